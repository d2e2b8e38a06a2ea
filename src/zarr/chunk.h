// Encoding and decoding of whole chunks: the codec chain of an array applied to one chunk.
//
// Raw chunks are dense, row-major, little-endian and of full chunk size, edge chunks too. The encoded bytes depend on
// the spec and the raw bytes only. One Scratch a thread; specs may be shared.
#pragma once

#include "zarr/array_spec.h"
#include "zarr/scratch.h"

namespace maxport::zarr {

/// Encodes a chunk. `raw` must be chunk_bytes(spec) long. What is returned lies in `scratch` (or is `raw` itself when
/// there is nothing to do) and stays valid until the scratch is used again. Chains that maxport never writes (gzip,
/// zlib, bz2) are kUnsupported.
Result<ByteSpan> encode_chunk(const ArraySpec& spec, ByteSpan raw, Scratch& scratch);

/// The same for a chunk that is followed by kChunkSpareBytes of its own memory, which are overwritten: a checksum then
/// needs no copy of the chunk.
inline constexpr size_t kChunkSpareBytes = 4;
Result<ByteSpan> encode_chunk_in_place(const ArraySpec& spec, MutableByteSpan raw, Scratch& scratch);

/// Decodes a chunk into `raw`, which must be chunk_bytes(spec) long. Wrong checksums, wrong sizes, surplus bytes and
/// more than one zstd frame are kCorruptData.
Result<> decode_chunk(const ArraySpec& spec, ByteSpan encoded, MutableByteSpan raw, Scratch& scratch);

}  // namespace maxport::zarr
