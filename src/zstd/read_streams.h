// The kernel of reading literals. Inner header of the room.
#pragma once

#include <array>

#include "base/bytes.h"
#include "zstd/huffman_code.h"

namespace maxport::zstd {

/// What the next kMaxCodeBits of a stream decode to.
struct ReadEntry {
  uint32_t symbols;    ///< up to four, the first in the lowest byte
  uint8_t bits;        ///< that they take together
  uint8_t count;       ///< how many symbols
  uint8_t first_bits;  ///< that the first one takes
  uint8_t unused;
};
using ReadTable = std::array<ReadEntry, size_t{1} << kMaxCodeBits>;

void fill_read_table(const HuffmanCode& code, ReadTable& table);

struct Stream {
  ByteSpan in;
  MutableByteSpan out;
};

/// Decodes four streams. False unless each ends exactly with its output.
bool read_streams(const std::array<Stream, 4>& streams, const ReadTable& table);

}  // namespace maxport::zstd
