// What values the tensors of an inspection have: extremes, moments and a histogram of each, from one pass over the elements.
//
// Counting goes by the upper 16 bits of each element as a float32, so that any range is covered without knowing it before;
// a bin's edge is off by at most 2^-8 of its value. Memory is one window and 512 KiB a thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "inspect/inspect.h"

namespace maxport::inspect {

inline constexpr size_t kBins = 48;

struct Values {
  uint64_t read = 0;      ///< elements; fewer than there are only where a sample was asked for
  uint64_t zeros = 0, nans = 0, infinities = 0;
  double least = 0, most = 0, mean = 0, deviation = 0;  ///< of the finite ones
  std::vector<uint64_t> bins;  ///< kBins of equal width from least to most; empty without finite elements
  std::string problem;         ///< why the elements cannot be read; empty when they can
};

struct ValueOptions {
  std::optional<uint64_t> sample = {};  ///< of each tensor read whole windows until there are this many elements
  std::function<bool()> cancelled = {};
};

/// One entry a tensor of the inspection; nothing for those without elements that are numbers.
Result<std::vector<std::optional<Values>>> read_values(Storage& storage, const std::string& path, const Inspection& inspection,
                                                       const ValueOptions& options);

}  // namespace maxport::inspect
