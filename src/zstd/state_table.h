// The states of finite state entropy (RFC 8878, 4.1.1) for the few symbols that weights are.
#pragma once

#include <array>
#include <cstdint>

#include "zstd/huffman_code.h"

namespace maxport::zstd {

/// Weights are 0 for "does not occur" and 1 (the longest code) to kMaxCodeBits. A description may name larger symbols.
inline constexpr int kWeights = kMaxCodeBits + 1;
inline constexpr int kMaxStateBits = 6;
inline constexpr int kMaxStates = 1 << kMaxStateBits;

/// How many of the 2^bits states each weight has; -1 is one state at the end of the table.
struct StateCounts {
  int bits = 0;
  std::array<int8_t, kWeights> of = {};
};

/// In state s: the symbol is known, and the next state is base[s] + that many bits of the stream.
struct StateTable {
  int bits = 0;
  std::array<uint8_t, kMaxStates> symbol = {}, bits_read = {}, base = {};
};

/// `counts` adds up to 2^bits states.
StateTable make_state_table(const StateCounts& counts);

}  // namespace maxport::zstd
