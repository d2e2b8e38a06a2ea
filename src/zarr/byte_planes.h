// Byte planes of elements: the first bytes of all elements side by side, then the second ones, and so on (blosc's byte
// shuffle). The planes of sign and exponent vary little among weights, those of the mantissa are noise.
#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace maxport::zarr {

/// True for the element sizes that the functions below take: 1, 2, 4 and 8.
bool has_byte_planes(size_t element_bytes);

/// `in` is whole elements; their plane i begins at byte i * stride of `out`, which does not overlap `in`.
void split_bytes(size_t element_bytes, ByteSpan in, MutableByteSpan out, size_t stride);
/// `in` and `out` are as long, whole elements, and do not overlap; the planes follow each other.
void join_bytes(size_t element_bytes, ByteSpan in, MutableByteSpan out);

}  // namespace maxport::zarr
