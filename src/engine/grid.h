// Which chunks a leaf is cut into, and which of them are made together.
//
// A chunk is cut so that it depends on few source tensors and, where the leaf is a transposed matrix, on a block of
// source rows that one sequential read brings. The simulated devices' shards (formats.md 3.9) are respected: along the
// shard axis a chunk is a part of a shard or a whole number of shards. Chunks that share the block of source rows form a
// band; making a band at once reads every source byte once. The choice is a function of shapes, strides and the number of
// devices alone, never of threads or memory, so that output bytes do not depend on the machine.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace maxport::engine {

/// Bytes that a chunk should have at most, and at least where the leaf is large enough.
inline constexpr int64_t kTargetChunkBytes = int64_t{2} << 20;
inline constexpr int64_t kMinimumChunkBytes = int64_t{1} << 20;
/// Bytes that a band of chunks should have at most.
inline constexpr int64_t kMaximumBandBytes = int64_t{32} << 20;

struct ChunkGrid {
  Shape chunk_shape;
  /// Axis along which the chunks of a band lie side by side; -1 when every chunk is a band of its own.
  int band_axis = -1;

  /// Number of chunks along each axis.
  Shape counts(std::span<const int64_t> shape) const;
  /// The whole band that holds the chunk position, as a box of the leaf.
  Box band_box(std::span<const int64_t> shape, std::span<const int64_t> position) const;
  Box chunk_box(std::span<const int64_t> shape, std::span<const int64_t> position) const;
};

/// `element_bytes` is the larger of source and target element size; `shard_axis` is the axis that the simulated devices
/// cut, -1 for none.
ChunkGrid choose_grid(const plan::Plan& plan, const plan::Leaf& leaf, int64_t element_bytes, int shard_axis, int devices);

}  // namespace maxport::engine
