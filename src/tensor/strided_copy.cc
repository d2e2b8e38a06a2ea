#include "tensor/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "tensor/pairs.h"
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

/// Takes the axis for the innermost loop out of the list: the closest in the target that is long enough for a loop.
Axis take_inner(AxisList& axes) {
  constexpr int64_t kLongEnough = 16;
  size_t inner = axes.size() - 1;
  for (size_t k = axes.size(); k-- > 0 && axes[inner].extent < kLongEnough;)
    if (axes[k].extent > axes[inner].extent) inner = k;
  const Axis out = axes[inner];
  std::rotate(axes.begin() + inner, axes.begin() + inner + 1, axes.end());
  axes.pop_back();
  return out;
}

/// Any walk; through small contiguous buffers if there is something to compute.
void copy_elements(const Walk& walk, const ElementOp& op) {
  AxisList outer = walk.axes;
  const Axis inner = outer.empty() ? Axis{1, 0, 0} : take_inner(outer);
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
  // Below a vector's length in either direction, tiles only cost.
  if (Transposition both; find_transposition(normal, both) && both.row_count * normal.target_bytes >= 16 &&
                          both.column_count * normal.source_bytes >= 16)
    return copy_transposed(both, normal, op);
  if (op.is_plain_copy() && copy_pairs(normal)) return;
  copy_elements(normal, op);
}

}  // namespace maxport
