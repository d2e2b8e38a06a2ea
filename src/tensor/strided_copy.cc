#include "tensor/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "tensor/transpose.h"
#include "tensor/walk.h"

namespace maxport {
namespace {

/// The innermost axis is contiguous on both sides: one run of the element kernel an index of the others.
void copy_runs(const Walk& walk, const ElementOp& op) {
  AxisList outer = walk.axes;
  outer.pop_back();
  const auto count = static_cast<size_t>(walk.axes.back().extent * walk.source_bytes / dtype_bytes(op.source));
  const ElementKernel kernel = element_kernel(op);
  for_each_index(outer, walk.source, walk.target,
                 [&](const std::byte* source, std::byte* target) { kernel(op, source, target, count); });
}

template <size_t kBytes>
void move_strided(const Axis& axis, const std::byte* source, std::byte* target) {
  for (int64_t i = 0; i < axis.extent; ++i) std::memcpy(target + i * axis.target, source + i * axis.source, kBytes);
}

using StridedMove = void (*)(const Axis& axis, const std::byte* source, std::byte* target);
StridedMove strided_move(int64_t element_bytes) {
  switch (element_bytes) {
    case 1: return move_strided<1>;
    case 2: return move_strided<2>;
    case 4: return move_strided<4>;
    case 8: return move_strided<8>;
    default: return move_strided<16>;
  }
}

/// Any walk: the longest axis innermost, through small contiguous buffers if there is something to compute.
void copy_elements(const Walk& walk, const ElementOp& op) {
  AxisList outer = walk.axes;
  Axis inner{1, walk.source_bytes, walk.target_bytes};
  if (!outer.empty()) {
    Axis* longest = std::ranges::max_element(outer, {}, &Axis::extent);
    inner = *longest;
    std::rotate(longest, longest + 1, outer.end());
    outer.pop_back();
  }
  if (op.is_plain_copy()) {
    const StridedMove move = strided_move(walk.source_bytes);
    return for_each_index(outer, walk.source, walk.target,
                          [&](const std::byte* source, std::byte* target) { move(inner, source, target); });
  }
  constexpr int64_t kBatch = 256;
  std::byte gathered[kBatch * 8], operated[kBatch * 8];
  const ElementKernel kernel = element_kernel(op);
  const StridedMove gather = strided_move(walk.source_bytes), scatter = strided_move(walk.target_bytes);
  for_each_index(outer, walk.source, walk.target, [&](const std::byte* source, std::byte* target) {
    for (int64_t done = 0; done < inner.extent; done += kBatch) {
      const int64_t batch = std::min(kBatch, inner.extent - done);
      gather({batch, inner.source, walk.source_bytes}, source + done * inner.source, gathered);
      kernel(op, gathered, operated, static_cast<size_t>(batch));
      scatter({batch, walk.target_bytes, inner.target}, operated, target + done * inner.target);
    }
  });
}

}  // namespace

void strided_copy(const StridedWalk& walk, const ElementOp& op, const std::byte* source, std::byte* target) {
  const Walk normal = normalized(walk, op, source, target);
  if (normal.empty) return;
  const AxisList& axes = normal.axes;
  if (!axes.empty() && axes.back().source == normal.source_bytes && axes.back().target == normal.target_bytes)
    return copy_runs(normal, op);
  if (Transposition transposition; find_transposition(normal, transposition))
    return copy_transposed(transposition, normal, op);
  copy_elements(normal, op);
}

}  // namespace maxport
