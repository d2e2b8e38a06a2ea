#include "tensor/walk.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace maxport {
namespace {

/// Walks a negative axis of the target from its other end.
void make_target_ascend(Walk& walk) {
  for (Axis& axis : walk.axes) {
    if (axis.target >= 0) continue;
    walk.source += axis.source * (axis.extent - 1);
    walk.target += axis.target * (axis.extent - 1);
    axis.source = -axis.source;
    axis.target = -axis.target;
  }
}

/// Joins neighbours that are one axis on both sides. Needs sorted axes.
AxisList merged(const AxisList& axes) {
  AxisList out;
  for (const Axis& inner : axes) {
    if (!out.empty() && out.back().source == inner.source * inner.extent &&
        out.back().target == inner.target * inner.extent) {
      out.back() = {out.back().extent * inner.extent, inner.source, inner.target};
    } else {
      out.push_back(inner);
    }
  }
  return out;
}

/// Makes a short run that is contiguous on both sides one larger element.
void absorb_run(Walk& walk) {
  if (walk.axes.empty()) return;
  const Axis& run = walk.axes.back();
  if (run.source != walk.source_bytes || run.target != walk.target_bytes || run.extent > 16) return;
  const int64_t bytes = run.extent * walk.source_bytes;
  if (bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16) return;
  walk.source_bytes = walk.target_bytes = bytes;
  walk.axes.pop_back();
}

}  // namespace

Walk normalized(const StridedWalk& in, const ElementOp& op, const std::byte* source, std::byte* target) {
  const size_t rank = in.extents.size();
  MAXPORT_CHECK(rank <= kMaxRank && in.source_strides.size() == rank && in.target_strides.size() == rank);
  Walk walk{{}, source, target, dtype_bytes(op.source), dtype_bytes(op.target)};
  for (size_t i = 0; i < rank; ++i) {
    if (in.extents[i] <= 0) walk.empty = true;
    if (in.extents[i] != 1)
      walk.axes.push_back(
          {in.extents[i], in.source_strides[i] * walk.source_bytes, in.target_strides[i] * walk.target_bytes});
  }
  if (walk.empty) return walk;
  make_target_ascend(walk);
  std::ranges::stable_sort(walk.axes, [](const Axis& a, const Axis& b) {
    return std::tuple(a.target, std::abs(a.source)) > std::tuple(b.target, std::abs(b.source));
  });
  walk.axes = merged(walk.axes);
  if (op.is_plain_copy()) absorb_run(walk);
  return walk;
}

}  // namespace maxport
