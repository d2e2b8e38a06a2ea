// How a Zstandard frame tells a Huffman code (RFC 8878, 4.2.1): weights of the symbols, themselves coded with finite state
// entropy (4.1), or half a byte each.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "zstd/huffman_code.h"

namespace maxport::zstd {

/// What a description takes at most.
inline constexpr size_t kMaxDescriptionBytes = 129;

/// Writes the description of a code of at least 2 symbols into `out`, which has kMaxDescriptionBytes. Returns its size; 0
/// when the format cannot express the code (more than 128 weights that are all alike).
size_t write_code_description(const HuffmanCode& code, MutableByteSpan out);

/// Reads the description that `in` begins with; `used` becomes its size. Nothing for what is damaged or names codes of
/// more than kMaxCodeBits.
std::optional<HuffmanCode> read_code_description(ByteSpan in, size_t& used);

}  // namespace maxport::zstd
