// The code of a block in the form that the writing kernel takes. Inner header of the room.
#pragma once

#include "base/bytes.h"
#include "zstd/huffman_code.h"

namespace maxport::zstd {

/// Bits of the codes in a window: eight of them fill 56 bits.
inline constexpr int kWindowBits = 7;
/// Bytes of one window: so many values of the lower seven bits, each with the uppermost bit 0 and 1.
inline constexpr int kWindowMagnitudes = 8;

struct StreamCode {
  HuffmanCode huffman;
  /// True when nearly all bytes lie in one window, which vectors can look up. The tables are then those of its bytes, index
  /// = uppermost bit * 8 + lower bits - window_begin; their codes have at most kWindowBits.
  bool has_window = false;
  uint8_t window_begin = 0;
  alignas(16) std::array<uint8_t, 16> codes = {}, bits = {}, powers = {};  ///< power = 2^bits
};

using Counts = std::array<uint32_t, 256>;

/// Counts some of the bytes, in stretches all over `in`.
Counts count_sample(ByteSpan in);

/// Whether the counts differ enough for codes to be worth a try; bytes of noise are not.
bool looks_uneven(const Counts& sample);

/// Makes of a sample of `in` counts in which every value that occurs in `in` has one; what does not occur may have 1.
void complete_counts(ByteSpan in, Counts& sample);

/// A nearly optimal code for these counts; at least 2 values must occur.
StreamCode make_stream_code(const Counts& counts);

}  // namespace maxport::zstd
