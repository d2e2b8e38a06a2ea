// Moves a block of elements from one strided layout to another, with an ElementOp on the way. Transposition, reshape,
// slicing, stacking, rope and gate/up interleaving are all such walks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/element_op.h"

namespace maxport {

/// One axis an entry, outermost first, at most kMaxRank of them; strides in elements of the side they belong to, of any
/// sign. The order of the axes does not matter.
struct StridedWalk {
  std::vector<int64_t> extents;
  std::vector<int64_t> source_strides;
  std::vector<int64_t> target_strides;
};

/// target[sum i*target_stride] = op(source[sum i*source_stride]) for every index; nothing if an extent is 0. Both
/// pointers are those of index zero and need no alignment. The two sides must not overlap; where the walk reaches one
/// target element twice (a zero stride) the value left there is one of those written.
/// The caller has checked that the walk stays within both buffers. Thread-safe; uses up to 80 KiB of stack, no heap.
void strided_copy(const StridedWalk& walk, const ElementOp& op, const std::byte* source, std::byte* target);

}  // namespace maxport
