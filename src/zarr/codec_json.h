// The codecs of an array as JSON: the "compressor" of Zarr v2 and the "codecs" of v3.
#pragma once

#include "base/json.h"
#include "zarr/array_spec.h"

namespace maxport::zarr {

/// The compressor of v2 metadata; nothing for null.
Result<std::vector<Codec>> parse_compressor(const Json& value, DType dtype, const std::string& what);
Json compressor_json(std::span<const Codec> byte_codecs);

/// A v3 chain for chunks of `chunk_shape`: transposes, one codec that makes bytes, codecs of bytes.
Result<std::vector<Codec>> parse_codecs(const Json& value, DType dtype, const Shape& chunk_shape,
                                        const std::string& what);
Json codecs_json(std::span<const Codec> codecs, DType dtype);

/// A list of extents, each at least `min`.
Result<Shape> parse_extents(const Json& value, int64_t min, const std::string& what);

}  // namespace maxport::zarr
