// Bytes like those that checkpoints hold, for the tests of the room.
#pragma once

#include <bit>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "zstd/stream_code.h"

namespace maxport::zstd {

struct Content {
  std::string name;
  Bytes bytes;
};

/// Of each byte of a float that is normal with deviation 0.02, the one that begins at bit `shift`.
inline Bytes normal_bytes(size_t count, int shift, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02f);
  Bytes out(count);
  for (std::byte& byte : out) byte = static_cast<std::byte>(std::bit_cast<uint32_t>(normal(random)) >> shift);
  return out;
}

inline Bytes drawn_bytes(size_t count, std::initializer_list<int> values, unsigned seed = 2) {
  std::mt19937 random(seed);
  const std::vector<int> from(values);
  Bytes out(count);
  for (std::byte& byte : out) byte = static_cast<std::byte>(from[random() % from.size()]);
  return out;
}

inline Counts all_counts(ByteSpan in) {
  Counts counts = count_sample(in);
  complete_counts(in, counts);
  return counts;
}

/// Content of one size and every kind that the writer treats in its own way.
inline std::vector<Content> contents(size_t count) {
  std::vector<Content> out = {{"signs and exponents", normal_bytes(count, 24)},
                              {"exponents of float16", normal_bytes(count, 20)},
                              {"mantissas", normal_bytes(count, 8)},
                              {"one value", Bytes(count, std::byte{0x3c})},
                              {"two values", drawn_bytes(count, {7, 250})},
                              {"three values", drawn_bytes(count, {7, 7, 7, 8, 8, 250})},
                              {"eight magnitudes", drawn_bytes(count, {56, 57, 58, 59, 59, 60, 61, 62, 62, 63, 191, 190, 184})}};
  // Weights of which some were set to 0, and one value that occurs once.
  Bytes pruned = normal_bytes(count, 24, 3);
  for (size_t i = 0; i < count; i += 3) pruned[i] = std::byte{0};
  out.push_back({"half zeros", pruned});
  Bytes rare = normal_bytes(count, 24, 4);
  if (count > 0) rare[count / 2] = std::byte{0x7f};
  out.push_back({"one infinity", rare});
  // Counts that fall by half from value to value: codes as long as they may be.
  Bytes halving(count);
  std::mt19937 random(5);
  for (std::byte& byte : halving) byte = static_cast<std::byte>(std::countl_zero(static_cast<uint32_t>(random())) * 11);
  out.push_back({"halving", halving});
  return out;
}

}  // namespace maxport::zstd
