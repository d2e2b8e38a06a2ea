// Frames of blosc 1 (version 2 of its format) with LZ4 and bit planes, written and read without the library, whose
// Debian build moves bits at a quarter of the speed. Any blosc reader takes what is written here.
//
//   header  u8 version = 2, u8 compressor version = 1, u8 flags, u8 element size, u32 bytes, u32 block size, u32 frame size
//           flags: bit 1 plain copy, bit 2 bit planes, bit 4 blocks are not split, bits 5 to 7 compressor (1 = LZ4)
//   u32 a block: where it begins; nothing for a plain copy, which is followed by the bytes
//   blocks  for each part (one a byte of an element, but one for the last block when it is shorter):
//           u32 size, bytes; of full size: not compressed
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "zarr/scratch.h"

namespace maxport::zarr {

/// What a frame can need at most.
size_t blosc_frame_bound(size_t bytes, size_t element_bytes);

/// True when encode_blosc_frame takes such input: whole groups of 8 elements of 2 or 4 bytes.
bool can_encode_blosc_frame(size_t bytes, size_t element_bytes);

/// Compresses `input` with LZ4's `acceleration` into `out`, which has blosc_frame_bound() bytes. Returns the frame's size.
size_t encode_blosc_frame(ByteSpan input, size_t element_bytes, int acceleration, Scratch& scratch, MutableByteSpan out);

/// Decodes a frame of exactly out.size() bytes when it is of the kind above, whoever wrote it; nothing when it is of
/// another kind. Untrusted input: kCorruptData tells what is wrong.
Result<bool> decode_blosc_frame(ByteSpan frame, MutableByteSpan out, Scratch& scratch);

}  // namespace maxport::zarr
