// Walking over the positions of a grid in row-major order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/shape.h"

namespace maxport::zarr {

/// Calls `visit(position)` for each position of a box, the last axis fastest, until it returns false. A box without
/// axes has one position.
template <class Visit>
void for_each_position(const Box& box, const Visit& visit) {
  if (box.empty()) return;
  std::vector<int64_t> position = box.origin;
  while (visit(std::span<const int64_t>(position))) {
    size_t axis = position.size();
    while (axis > 0 && ++position[axis - 1] == box.origin[axis - 1] + box.shape[axis - 1]) {
      --axis;
      position[axis] = box.origin[axis];
    }
    if (axis == 0) return;
  }
}

template <class Visit>
void for_each_position(const Shape& grid, const Visit& visit) {
  for_each_position(Box::whole(grid), visit);
}

/// The grid positions of the chunks of `chunk_shape` that `region` touches.
Box touched_chunks(const Box& region, std::span<const int64_t> chunk_shape);

}  // namespace maxport::zarr
