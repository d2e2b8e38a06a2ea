#include "compare/jobs.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

namespace maxport::compare {
namespace {

constexpr int64_t kWindowBytes = int64_t{8} << 20;
/// Windows grow to this where the chunks of both sides would otherwise be decoded again and again.
constexpr int64_t kMostWindowBytes = int64_t{64} << 20;

/// For each axis of the primary's box the axis of the other box, -1 where the box has extent 1 and the other none left.
std::vector<int> matching_axes(const Box& box, const Box& other) {
  std::vector<int> out(box.shape.size(), -1);
  size_t next = 0;
  for (size_t axis = 0; axis < box.shape.size(); ++axis) {
    if (box.shape[axis] == 1) continue;
    while (next < other.shape.size() && other.shape[next] == 1) ++next;
    MAXPORT_CHECK(next < other.shape.size() && other.shape[next] == box.shape[axis]);
    out[axis] = static_cast<int>(next++);
  }
  return out;
}

struct Window {
  uint32_t job;
  uint64_t number;
};

/// What one window gave to one entry.
struct Finding {
  size_t entry;
  Statistics statistics;
};

class Runner {
 public:
  Runner(const std::vector<Job>& jobs, const JobOptions& options) : jobs_(jobs), options_(options) {
    for (uint32_t i = 0; i < jobs.size(); ++i) {
      shapes_.push_back(window_shape(jobs[i]));
      Shape counts;
      for (size_t axis = 0; axis < shapes_[i].size(); ++axis)
        counts.push_back((jobs[i].primary->shape()[axis] + shapes_[i][axis] - 1) / shapes_[i][axis]);
      const auto count = static_cast<uint64_t>(element_count(counts));
      for (uint64_t n = 0; n < count; ++n) windows_.push_back({i, n});
      counts_.push_back(std::move(counts));
      axes_.emplace_back();
      for (const Part& part : jobs[i].parts) axes_[i].push_back(matching_axes(part.box, part.other_box));
    }
    findings_.resize(windows_.size());
  }

  Result<> run(std::vector<Statistics>& entries) {
    {
      std::vector<std::jthread> others;
      for (int i = 1; i < options_.threads; ++i) others.emplace_back([this] { work(); });
      work();
    }
    if (error_) return std::unexpected(std::move(*error_));
    if (options_.cancelled && options_.cancelled()) return fail(ErrorKind::kInterrupted, "stopped");
    for (const auto& window : findings_)
      for (const Finding& finding : window) entries[finding.entry].merge(finding.statistics);
    return {};
  }

 private:
  void work() {
    Workspace workspace;
    for (size_t i; !failed_ && (i = next_.fetch_add(1)) < windows_.size();) {
      if (options_.cancelled && options_.cancelled()) return;
      if (Result<> status = compare_window(i, workspace); !status) {
        const std::lock_guard lock(mutex_);
        if (!failed_.exchange(true)) error_ = std::move(status).error();
      }
    }
  }

  Box window_box(const Window& window) const {
    const Job& job = jobs_[window.job];
    Box box = Box::whole(job.primary->shape());
    uint64_t rest = window.number;
    for (size_t axis = box.shape.size(); axis-- > 0;) {
      const auto count = static_cast<uint64_t>(counts_[window.job][axis]);
      box.origin[axis] = static_cast<int64_t>(rest % count) * shapes_[window.job][axis];
      box.shape[axis] = std::min(shapes_[window.job][axis], box.shape[axis] - box.origin[axis]);
      rest /= count;
    }
    return box;
  }

  Result<> compare_window(size_t index, Workspace& workspace) {
    const Window& window = windows_[index];
    const Job& job = jobs_[window.job];
    const Box box = window_box(window);
    if (box.empty()) return {};
    bool loaded = false;
    for (size_t p = 0; p < job.parts.size(); ++p) {
      const Part& part = job.parts[p];
      const Box common = intersect(part.box, box);
      if (common.empty()) continue;
      if (!loaded) {
        workspace.a.resize(static_cast<size_t>(element_count(box.shape) * dtype_bytes(job.primary->dtype())));
        MAXPORT_RETURN_IF_ERROR(job.primary->read(box, workspace.a, workspace));
        loaded = true;
      }
      Box other = part.other_box;
      for (size_t axis = 0; axis < common.shape.size(); ++axis) {
        const int at = axes_[window.job][p][axis];
        if (at < 0) continue;
        other.origin[static_cast<size_t>(at)] += common.origin[axis] - part.box.origin[axis];
        other.shape[static_cast<size_t>(at)] = common.shape[axis];
      }
      workspace.b.resize(static_cast<size_t>(element_count(other.shape) * dtype_bytes(part.other->dtype())));
      MAXPORT_RETURN_IF_ERROR(part.other->read(other, workspace.b, workspace));
      findings_[index].push_back({part.entry, {}});
      compare_part(job, part, box, common, workspace, findings_[index].back().statistics);
    }
    if (options_.bytes_done != nullptr) *options_.bytes_done += static_cast<uint64_t>(element_count(box.shape) * dtype_bytes(job.primary->dtype()));
    return {};
  }

  /// `common` lies in the window `box`; the other side is dense.
  void compare_part(const Job& job, const Part& part, const Box& box, const Box& common, const Workspace& workspace, Statistics& out) const {
    const DType own = job.primary->dtype(), other = part.other->dtype();
    const std::vector<int64_t> in_window = row_major_strides(box.shape), in_whole = row_major_strides(job.primary->shape());
    // Axes that are whole in window and tensor make one run with the first that is not.
    size_t outer = common.shape.size();
    int64_t run = 1;
    while (outer > 0) {
      --outer;
      run *= common.shape[outer];
      if (common.shape[outer] != box.shape[outer] || box.shape[outer] != job.primary->shape()[outer]) break;
    }
    std::vector<int64_t> at(outer, 0);
    const int64_t count = element_count(common.shape);
    for (int64_t done = 0; done < count; done += run) {
      int64_t from = 0;
      auto position = static_cast<int64_t>(job.first_position);
      for (size_t axis = 0; axis < common.shape.size(); ++axis) {
        const int64_t index = common.origin[axis] + (axis < outer ? at[axis] : 0);
        from += (index - box.origin[axis]) * in_window[axis];
        position += index * in_whole[axis];
      }
      const std::byte* mine = workspace.a.data() + from * dtype_bytes(own);
      const std::byte* theirs = workspace.b.data() + done * dtype_bytes(other);
      if (job.primary_is_a)
        compare_run(own, mine, other, theirs, static_cast<size_t>(run), static_cast<uint64_t>(position), options_.tolerance, out);
      else
        compare_run(other, theirs, own, mine, static_cast<size_t>(run), static_cast<uint64_t>(position), options_.tolerance, out);
      for (size_t axis = outer; axis-- > 0;) {
        if (++at[axis] < common.shape[axis]) break;
        at[axis] = 0;
      }
    }
  }

  const std::vector<Job>& jobs_;
  const JobOptions& options_;
  std::vector<Shape> shapes_, counts_;
  std::vector<std::vector<std::vector<int>>> axes_;  // by job, part and axis of the primary
  std::vector<Window> windows_;
  std::vector<std::vector<Finding>> findings_;  // by window
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::optional<Error> error_;
};

}  // namespace

Shape window_shape(const Job& job) {
  const Shape& shape = job.primary->shape();
  const int64_t element = dtype_bytes(job.primary->dtype());
  Shape own = job.primary->chunk_shape(), both = own;
  for (const Part& part : job.parts) {
    const Shape other = part.other->chunk_shape();
    const std::vector<int> axes = matching_axes(part.box, part.other_box);
    for (size_t axis = 0; axis < both.size(); ++axis)
      if (axes[axis] >= 0) both[axis] = std::max(both[axis], other[static_cast<size_t>(axes[axis])]);
  }
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t whole = std::max<int64_t>(shape[axis], 1);
    own[axis] = std::min(own[axis], whole);
    both[axis] = std::min(both[axis], whole);
  }
  Shape window = element_count(both) * element <= kMostWindowBytes ? both : own;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const int64_t most = kWindowBytes / std::max<int64_t>(1, element_count(window) * element);
    if (most > 1) window[axis] = std::min(std::max<int64_t>(shape[axis], 1), window[axis] * most);
    if (window[axis] < shape[axis]) break;
  }
  return window;
}

uint64_t job_bytes(const std::vector<Job>& jobs) {
  uint64_t bytes = 0;
  for (const Job& job : jobs) bytes += static_cast<uint64_t>(element_count(job.primary->shape()) * dtype_bytes(job.primary->dtype()));
  return bytes;
}

Result<> run_jobs(const std::vector<Job>& jobs, const JobOptions& options, std::vector<Statistics>& entries) {
  return Runner(jobs, options).run(entries);
}

}  // namespace maxport::compare
