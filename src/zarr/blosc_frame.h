// Frames of blosc 1 (version 2 of its format), written and read without the library, whose Debian build moves bits at a
// quarter of the speed and whose Zstandard is as slow as its Huffman coder. Any blosc reader takes what is written here.
//
//   header  u8 version = 2, u8 compressor version = 1, u8 flags, u8 element size, u32 bytes, u32 block size, u32 frame size
//           flags: bit 0 byte planes, bit 1 plain copy, bit 2 bit planes, bit 4 blocks are not split, bits 5 to 7 compressor
//           (1 = LZ4, 4 = Zstandard)
//   u32 a block: where it begins; nothing for a plain copy, which is followed by the bytes
//   blocks  for each part (one a byte of an element, but one for the last block when it is shorter):
//           u32 size, bytes; of full size: not compressed
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "zarr/scratch.h"

namespace maxport::zarr {

enum class FrameKind {
  kHuffman,  ///< byte planes, each as it is or as a Zstandard frame of Huffman codes
  kLz4,      ///< bit planes, LZ4
};

/// What a frame can need at most.
size_t blosc_frame_bound(size_t bytes, size_t element_bytes);

/// True when encode_blosc_frame takes such input: elements of 1, 2, 4 or 8 bytes; for LZ4 whole groups of 8 elements of 2 or
/// 4 bytes.
bool can_encode_blosc_frame(FrameKind kind, size_t bytes, size_t element_bytes);

/// Compresses `input` into `out`, which has blosc_frame_bound() bytes. Returns the frame's size.
size_t encode_blosc_frame(FrameKind kind, ByteSpan input, size_t element_bytes, Scratch& scratch, MutableByteSpan out);

/// Decodes a frame of exactly out.size() bytes when it has one of the compressors above, whoever wrote it; nothing when it
/// is of another kind. Untrusted input: kCorruptData tells what is wrong.
Result<bool> decode_blosc_frame(ByteSpan frame, MutableByteSpan out, Scratch& scratch);

}  // namespace maxport::zarr
