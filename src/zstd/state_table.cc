#include "zstd/state_table.h"

#include <bit>

namespace maxport::zstd {

StateTable make_state_table(const StateCounts& counts) {
  StateTable table{.bits = counts.bits};
  const int states = 1 << counts.bits, step = (states >> 1) + (states >> 3) + 3;
  int end = states;
  std::array<uint8_t, kWeights> next = {};
  for (int symbol = 0; symbol < kWeights; ++symbol) {
    const int count = counts.of[symbol];
    next[symbol] = static_cast<uint8_t>(count < 0 ? 1 : count);
    if (count < 0) table.symbol[--end] = static_cast<uint8_t>(symbol);
  }
  for (int symbol = 0, at = 0; symbol < kWeights; ++symbol)
    for (int i = 0; i < counts.of[symbol]; ++i) {
      table.symbol[at] = static_cast<uint8_t>(symbol);
      do at = (at + step) & (states - 1);
      while (at >= end);
    }
  for (int state = 0; state < states; ++state) {
    const unsigned place = next[table.symbol[state]]++;
    const int bits = counts.bits - (std::bit_width(place) - 1);
    table.bits_read[state] = static_cast<uint8_t>(bits);
    table.base[state] = static_cast<uint8_t>((place << bits) - static_cast<unsigned>(states));
  }
  return table;
}

}  // namespace maxport::zstd
