// Which chunks a leaf is cut into, and which of them are made together.
//
// A chunk is cut so that it depends on few source tensors and, where the leaf is a transposed matrix, on a block of
// source rows that one sequential read brings. The simulated devices' shards (formats.md 3.9) are respected: along the
// shard axis a chunk is a part of a shard or a whole number of shards. Chunks that share the block of source rows form a
// band; making a band at once reads every source byte once. A band should stay in the processor's cache between being read
// and being cut into chunks, so chunks are small, and larger only in models that would have too many of them. The choice is
// a function of shapes, strides and the number of devices alone, never of threads or memory, so that output bytes do not
// depend on the machine.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace maxport::engine {

/// Bytes that a chunk should have at most, and half of it at least where the leaf is large enough: by the size of the model.
inline constexpr int64_t kSmallChunkBytes = int64_t{1} << 20;
inline constexpr int64_t kLargeChunkBytes = int64_t{2} << 20;
/// Models of more small chunks than this get large ones. TensorStore restores 2 to 10 % faster from large ones; more
/// than that is lost in making them, as long as the model fits into memory.
inline constexpr int64_t kMaximumSmallChunks = int64_t{1} << 17;
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

struct GridRequest {
  int64_t chunk_bytes = kSmallChunkBytes;  ///< chunk_bytes_for the plan
  int64_t element_bytes = 2;               ///< the larger of source and target element size
  int shard_axis = -1;                     ///< that the simulated devices cut, -1 for none
  int devices = 1;
};

/// kSmallChunkBytes or kLargeChunkBytes, as the plan's leaves would have in bfloat16.
int64_t chunk_bytes_for(const plan::Plan& plan);
ChunkGrid choose_grid(const plan::Plan& plan, const plan::Leaf& leaf, const GridRequest& request);

}  // namespace maxport::engine
