// Conversion of contiguous runs from one element type to another.
//
// The rules are those of NumPy and ml_dtypes, so that a converted weight has the same bits as theirs:
//  - narrowing a float rounds to nearest, ties to even, and keeps subnormals; beyond the largest value it gives
//    infinity, where there is none NaN (the *fn and *fnuz types of 8 bits), where there is no NaN either the
//    largest value (4 and 6 bits);
//  - the types of ml_dtypes (bfloat16, 8, 6 and 4 bits) are reached through float32: from float64, int32 and wider a
//    value is first rounded to float32;
//  - integers narrow by dropping high bits; a float becomes an integer by truncation, clamped to the type's range, NaN
//    becomes 0 (NumPy leaves the last two open); anything but zero is true;
//  - elements of less than a byte take one byte each, written with the unused high bits zero and read without them;
//  - float8_e8m0fnu holds powers of two from 2^-127 to 2^127: ties go up, smaller values to 2^-127, zero and negative
//    ones to NaN.
//
// NaN stays NaN with its sign. Widening of float16 and bfloat16 to float32 moves the payload bits; everything else
// yields the target's canonical quiet NaN (0x7FC0 in bfloat16, 0x7E00 in float16, 0x7E in float8_e5m2, ...), so NaN of
// float32 to float16 is the one place that differs from NumPy, which truncates the payload. A conversion of a type to
// itself copies bytes.
//
// All functions may run in several threads at once; none allocates or fails.
#pragma once

#include "base/bytes.h"
#include "tensor/dtype.h"

namespace maxport {

/// False only for complex types: they convert to themselves and nothing else.
bool can_cast(DType from, DType to);

/// Converts in.size() / dtype_bytes(from) elements. `out` must hold as many of type `to` and must not overlap `in`;
/// neither needs any alignment. can_cast(from, to) must hold.
void cast(DType from, ByteSpan in, DType to, MutableByteSpan out);

}  // namespace maxport
