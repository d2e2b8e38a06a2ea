// The threads of a conversion: segments are made on several, and finished in turn beside them.
#pragma once

#include <functional>

#include "engine/finisher.h"

namespace maxport::engine {

using Cancelled = std::function<bool()>;
/// Makes a segment and returns what is left to do to finish it (make it durable, tell about it). `cancelled` is asked
/// now and then; when it says yes, kInterrupted is the answer.
using MakeSegment = std::function<Result<Finisher::Task>(size_t segment, const Cancelled& cancelled)>;

struct SegmentRun {
  size_t count = 0;
  int threads = 1;
  std::function<bool(size_t segment)> is_done;  ///< by an earlier run: left out
  Cancelled cancelled;                          ///< from outside; may be empty
  /// Called once on each thread, for what a thread keeps from segment to segment.
  std::function<MakeSegment()> start_thread;
};

/// Files that a run holds open at once at most, besides its sources: of each thread the one that it writes, a temporary
/// one, one that is made durable and that one's folder; and what the program opens now and then (journal, locks).
constexpr size_t open_files(int threads) { return 4 * static_cast<size_t>(threads) + 16; }

/// The first error stops all threads and is returned.
Result<> run_segments(const SegmentRun& run);

}  // namespace maxport::engine
