#include "engine/run_segments.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace maxport::engine {
namespace {

/// Segments a thread that may be made but not durable yet.
constexpr size_t kUnfinished = 2;

}  // namespace

Result<> run_segments(const SegmentRun& run) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Result<> first_error;
  Finisher finisher(kUnfinished * static_cast<size_t>(run.threads));
  const Cancelled cancelled = [&] { return failed.load(std::memory_order_relaxed) || (run.cancelled && run.cancelled()); };
  const auto make = [&](const MakeSegment& make_segment, size_t segment) -> Result<> {
    MAXPORT_ASSIGN_OR_RETURN(Finisher::Task finish, make_segment(segment, cancelled));
    return finisher.add(std::move(finish));
  };
  const auto work = [&] {
    const MakeSegment make_segment = run.start_thread();
    for (size_t segment; !failed && (segment = next.fetch_add(1)) < run.count;) {
      if (run.is_done(segment)) continue;
      if (Result<> status = make(make_segment, segment); !status) {
        const std::lock_guard lock(mutex);
        if (!failed.exchange(true)) first_error = std::move(status);
      }
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < run.threads; ++i) others.emplace_back(work);
  work();
  others.clear();
  // An error while finishing comes first: "stopped" is only what the threads heard of it.
  MAXPORT_RETURN_IF_ERROR(finisher.finish());
  return first_error;
}

}  // namespace maxport::engine
