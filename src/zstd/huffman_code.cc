#include "zstd/huffman_code.h"

#include <algorithm>
#include <bitset>

#include "base/error.h"

namespace maxport::zstd {

void limited_lengths(std::span<const uint32_t> counts, int limit, std::span<uint8_t> bits) {
  const size_t symbols = counts.size();
  MAXPORT_CHECK(symbols >= 2 && symbols <= 256 && limit <= kMaxCodeBits && symbols <= size_t{1} << limit);
  // The items of a level: the symbols themselves and the pairs of the level before, by weight.
  std::array<uint64_t, 512> items, pairs;
  std::array<std::bitset<512>, kMaxCodeBits> is_symbol;
  size_t pair_count = 0;
  for (int level = 0; level < limit; ++level) {
    size_t item = 0, symbol = 0, pair = 0;
    while (symbol < symbols || pair < pair_count) {
      const bool take_symbol = pair == pair_count || (symbol < symbols && counts[symbol] <= pairs[pair]);
      items[item] = take_symbol ? counts[symbol++] : pairs[pair++];
      is_symbol[level][item++] = take_symbol;
    }
    pair_count = item / 2;
    for (size_t i = 0; i < pair_count; ++i) pairs[i] = items[2 * i] + items[2 * i + 1];
  }
  // The cheapest 2n - 2 items of the last level make the code: a symbol's length is how often it is among them.
  std::ranges::fill(bits, uint8_t{0});
  size_t taken = 2 * symbols - 2;
  for (int level = limit; level-- > 0 && taken > 0;) {
    size_t of_symbols = 0;
    for (size_t i = 0; i < taken; ++i) of_symbols += is_symbol[level][i];
    for (size_t i = 0; i < of_symbols; ++i) ++bits[i];
    taken = 2 * (taken - of_symbols);
  }
}

HuffmanCode optimal_code(const std::array<uint32_t, 256>& counts, int limit) {
  struct Symbol {
    uint32_t count;
    uint32_t value;
    auto operator<=>(const Symbol&) const = default;
  };
  std::array<Symbol, 256> symbols;
  size_t used = 0;
  for (uint32_t value = 0; value < 256; ++value)
    if (counts[value] > 0) symbols[used++] = {counts[value], value};
  std::sort(symbols.begin(), symbols.begin() + static_cast<ptrdiff_t>(used));
  std::array<uint32_t, 256> ascending;
  for (size_t i = 0; i < used; ++i) ascending[i] = symbols[i].count;
  std::array<uint8_t, 256> bits;
  limited_lengths(std::span(ascending).first(used), limit, std::span(bits).first(used));
  HuffmanCode code;
  for (size_t i = 0; i < used; ++i) code.bits[symbols[i].value] = bits[i];
  assign_codes(code);
  return code;
}

void assign_codes(HuffmanCode& code) {
  code.longest = std::ranges::max(code.bits);
  std::array<uint16_t, kMaxCodeBits + 1> of_length = {}, next = {};
  for (uint8_t bits : code.bits) ++of_length[bits];
  // Longest codes come first, from 0 up; the prefix of the code that would follow is the first of the next length.
  for (int bits = code.longest - 1; bits > 0; --bits)
    next[bits] = static_cast<uint16_t>((next[bits + 1] + of_length[bits + 1]) >> 1);
  for (size_t symbol = 0; symbol < 256; ++symbol)
    if (code.bits[symbol] > 0) code.codes[symbol] = next[code.bits[symbol]]++;
}

}  // namespace maxport::zstd
