// Comparing in windows: what is compared with what, cut into boxes that several threads take one after the other.
//
// A job walks one tensor, the primary one, window by window. Each of its parts is a box of the primary that has a
// counterpart of the same extents (but for axes of extent 1) in another tensor: the whole, or one layer of a stack. A
// window is some 8 MiB, or as large as the stored chunks force it to be; each thread holds one window of either side.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "compare/statistics.h"
#include "compare/window_reader.h"

namespace maxport::compare {

struct Part {
  Box box;                                  ///< of the primary
  const WindowReader* other = nullptr;
  Box other_box;
  size_t entry = 0;                         ///< where its statistics go
};

/// The primary's elements get the numbers from `first_position` on, row-major, under which Statistics::first names them.
struct Job {
  const WindowReader* primary = nullptr;
  bool primary_is_a = true;
  std::vector<Part> parts;
  uint64_t first_position = 0;
};

struct JobOptions {
  double tolerance = 0;
  int threads = 1;
  std::function<bool()> cancelled;
  std::atomic<uint64_t>* bytes_done = nullptr;  ///< of the primaries
};

/// The extents of a job's windows.
Shape window_shape(const Job& job);

/// Bytes of all primaries.
uint64_t job_bytes(const std::vector<Job>& jobs);

/// Adds to `entries` what the parts give. The first error stops all threads.
Result<> run_jobs(const std::vector<Job>& jobs, const JobOptions& options, std::vector<Statistics>& entries);

}  // namespace maxport::compare
