// The "fill_value" of an array: JSON to one element and back.
#pragma once

#include "base/json.h"
#include "zarr/array_spec.h"

namespace maxport::zarr {

/// One element in memory order; empty for v2's null. Numbers, true and false, for floating types also "NaN",
/// "Infinity", "-Infinity" and, in v3, "0x" and the element's bits; complex values are lists of two of these.
/// Floating values round to the type; integers must fit it.
Result<Bytes> parse_fill_value(Version version, DType dtype, const Json& value, std::string_view what);

/// The inverse. An element of zero bytes is written as zero of its type.
Json fill_value_json(Version version, DType dtype, ByteSpan element);

}  // namespace maxport::zarr
