// Decoding part of a chunk: only the sub-chunks, and of plain bytes only the rows, that a region needs are read.
#pragma once

#include "zarr/array_spec.h"
#include "zarr/byte_source.h"
#include "zarr/scratch.h"
#include "zarr/elements.h"

namespace maxport::zarr {

/// What stays the same from a chunk down to its innermost sub-chunks.
struct RegionContext {
  DType dtype = DType::kFloat32;
  ByteSpan fill;              ///< one element, used for missing sub-chunks
  bool fill_missing = false;  ///< otherwise a missing sub-chunk is kNotFound
};

/// Decodes `region` (relative to the chunk) of a chunk of `chunk_shape` that is encoded by `codecs`. Element
/// `region.origin + x` of the chunk goes to element x of the target.
Result<> decode_region(const RegionContext& context, std::span<const Codec> codecs, std::span<const int64_t> chunk_shape,
                       ByteSource& source, const Box& region, const ElementTarget& target, Scratch& scratch);

}  // namespace maxport::zarr
