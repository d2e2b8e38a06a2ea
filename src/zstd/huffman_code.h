// Huffman codes of bytes as Zstandard's literals have them (RFC 8878, 4.2.1): canonical, of at most 11 bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace maxport::zstd {

/// Bits that a code may have in a Zstandard frame.
inline constexpr int kMaxCodeBits = 11;

struct HuffmanCode {
  std::array<uint8_t, 256> bits = {};    ///< of the symbol's code; 0 for a symbol that does not occur
  std::array<uint16_t, 256> codes = {};  ///< the most significant bit is read first
  int longest = 0;                       ///< bits of the longest code
};

/// Lengths of a prefix code of the smallest total for these counts, each at most `limit` bits: `counts` is ascending and
/// has 2 to 2^limit members, `bits` is as long. (Package-merge: Larmore and Hirschberg, 1990.)
void limited_lengths(std::span<const uint32_t> counts, int limit, std::span<uint8_t> bits);

/// The best code for these counts with codes of at most `limit` bits; at least 2 symbols must occur.
HuffmanCode optimal_code(const std::array<uint32_t, 256>& counts, int limit);

/// Fills in `codes` and `longest` from `bits`, which must be those of a complete code.
void assign_codes(HuffmanCode& code);

}  // namespace maxport::zstd
