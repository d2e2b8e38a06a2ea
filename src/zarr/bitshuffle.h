// Bit planes of elements: bit b of all elements side by side, for b from the lowest up (the bitshuffle of K. Masui as
// blosc 1 applies it). Planes of sign and exponent, which vary little among weights, then compress where whole elements
// do not.
//
// Element i's bit b is bit i % 8 of byte i / 8 of plane b; byte order is little-endian.
#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace maxport::zarr {

/// True for the element sizes that the functions below take: 2 and 4.
bool has_bitshuffle(size_t element_bytes);

/// `in` and `out` are as long, a multiple of 8 elements, and do not overlap.
void bitshuffle(size_t element_bytes, ByteSpan in, MutableByteSpan out);
void bitunshuffle(size_t element_bytes, ByteSpan in, MutableByteSpan out);

}  // namespace maxport::zarr
