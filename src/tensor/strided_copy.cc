#include "tensor/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "tensor/shape.h"

namespace maxport {
namespace {

struct Axis {
  int64_t extent, source, target;
};

}  // namespace

void strided_copy(const StridedWalk& walk, const ElementOp& op, const std::byte* source, std::byte* target) {
  MAXPORT_CHECK(walk.source_strides.size() == walk.extents.size() && walk.target_strides.size() == walk.extents.size());
  const int64_t source_bytes = dtype_bytes(op.source), target_bytes = dtype_bytes(op.target);
  std::vector<Axis> axes;
  for (size_t i = 0; i < walk.extents.size(); ++i) {
    if (walk.extents[i] <= 0) return;
    if (walk.extents[i] != 1)
      axes.push_back({walk.extents[i], walk.source_strides[i] * source_bytes, walk.target_strides[i] * target_bytes});
  }
  std::vector<int64_t> index(axes.size());
  while (true) {
    apply(op, {source, static_cast<size_t>(source_bytes)}, {target, static_cast<size_t>(target_bytes)});
    size_t k = axes.size();
    for (; k > 0; --k) {
      Axis& axis = axes[k - 1];
      source += axis.source, target += axis.target;
      if (++index[k - 1] < axis.extent) break;
      source -= axis.source * axis.extent, target -= axis.target * axis.extent;
      index[k - 1] = 0;
    }
    if (k == 0) return;
  }
}

}  // namespace maxport
