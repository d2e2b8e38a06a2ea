// A chunk decoded from its beginning to its end, a piece at a time: chunks of several hundred megabytes, as MaxText writes
// them for stacked layers, then need a few megabytes of memory.
#pragma once

#include <memory>

#include "zarr/array_spec.h"
#include "zarr/byte_source.h"

namespace maxport::zarr {

class ChunkStream {
 public:
  virtual ~ChunkStream() = default;
  /// The next out.size() bytes of the decoded chunk, elements in row-major order and little-endian. Past the end, and where
  /// the encoded bytes hold less or more than the chunk, is kCorruptData (the latter when the last byte was asked for).
  virtual Result<> read(MutableByteSpan out) = 0;
};

/// True for chains that decode in pieces: little-endian bytes alone, or with zstd after them, also as the only sub-chunk
/// of a shard.
bool can_stream(const ArraySpec& spec);

/// can_stream(spec) must hold. `encoded` is what is stored for the chunk.
Result<std::unique_ptr<ChunkStream>> stream_chunk(const ArraySpec& spec, std::unique_ptr<ByteSource> encoded);

}  // namespace maxport::zarr
