#include "zarr/grid.h"

namespace maxport::zarr {

Box touched_chunks(const Box& region, std::span<const int64_t> chunk_shape) {
  Box out = region;
  for (size_t i = 0; i < chunk_shape.size(); ++i) {
    out.origin[i] = region.origin[i] / chunk_shape[i];
    if (region.shape[i] == 0) continue;
    const int64_t last = (region.origin[i] + region.shape[i] - 1) / chunk_shape[i];
    out.shape[i] = last - out.origin[i] + 1;
  }
  return out;
}

}  // namespace maxport::zarr
