// Proof that strided walks fill an array: every element exactly once, or which one is missing or filled twice.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace maxport::plan {

/// One strided walk over a flat array: the elements offset + sum(i_k * strides[k]), 0 <= i_k < extents[k].
struct Footprint {
  int64_t offset;
  std::span<const int64_t> extents;
  std::span<const int64_t> strides;
};

struct Coverage {
  int64_t covered = 0;                           ///< elements filled once
  int64_t overlap_at = -1;                       ///< an element that two walks (or one walk twice) fill, or -1
  size_t overlap_first = 0, overlap_second = 0;  ///< which walks
  bool outside = false;                          ///< a walk leaves the array
  bool complete(int64_t size) const { return overlap_at < 0 && !outside && covered == size; }
};

/// Exact, and independent of the array's size: the flat positions are written in a mixed radix in which every walk is a
/// box, and boxes are compared. Where no such radix exists (no divisibility between the strides) arrays of up to 2^28
/// elements are counted one by one and larger ones are refused (kUnsupported).
Result<Coverage> cover(int64_t size, std::span<const Footprint> walks);

}  // namespace maxport::plan
