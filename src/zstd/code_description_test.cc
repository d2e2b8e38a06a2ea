#include "zstd/code_description.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace maxport::zstd {
namespace {

/// Counts of `symbols` values up to `largest`, some of them many times as frequent as others.
std::array<uint32_t, 256> some_counts(std::mt19937& random, unsigned symbols, unsigned largest) {
  std::array<uint32_t, 256> counts = {};
  const unsigned spread = random() % 20;
  for (unsigned i = 0; i < symbols; ++i) counts[random() % (largest + 1)] = 1 + (random() >> (random() % (spread + 1) + 8));
  counts[0] += counts[0] == 0;
  counts[largest] += counts[largest] == 0;
  return counts;
}

TEST(CodeDescription, TellsTheWholeCode) {
  std::mt19937 random(1);
  int coded = 0, plain = 0;
  for (int i = 0; i < 5000; ++i) {
    const unsigned largest = 1 + random() % 255;
    const HuffmanCode code = optimal_code(some_counts(random, 1 + random() % 256, largest), 8 + static_cast<int>(random() % 4));
    std::array<std::byte, kMaxDescriptionBytes> bytes;
    const size_t size = write_code_description(code, bytes);
    if (size == 0) {
      // Weights that are nearly all alike: a byte for two would be too many, the states take as much.
      ASSERT_GT(largest, 128u);
      continue;
    }
    ++(static_cast<uint8_t>(bytes[0]) < 128 ? coded : plain);
    ASSERT_LE(size, kMaxDescriptionBytes);
    Bytes in(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    in.push_back(std::byte{0x55});  // what follows is not part of it
    size_t used = 0;
    const auto back = read_code_description(in, used);
    ASSERT_TRUE(back) << i;
    ASSERT_EQ(used, size);
    ASSERT_EQ(back->bits, code.bits);
    ASSERT_EQ(back->codes, code.codes);
    ASSERT_EQ(back->longest, code.longest);
  }
  EXPECT_GT(coded, 1000);
  EXPECT_GT(plain, 100);
}

TEST(CodeDescription, OfAnyBytesIsACompleteCodeOrNone) {
  std::mt19937 random(2);
  int codes = 0;
  for (int i = 0; i < 200'000; ++i) {
    Bytes in(random() % 140);
    for (std::byte& byte : in) byte = static_cast<std::byte>(i % 3 ? random() : random() & 0x33);
    if (i % 2 && in.size() > 1) in[0] = static_cast<std::byte>(random() % in.size());
    size_t used = 0;
    const auto code = read_code_description(in, used);
    if (!code) continue;
    ++codes;
    ASSERT_LE(used, in.size());
    unsigned filled = 0;
    for (uint8_t bits : code->bits) filled += bits ? 1u << (code->longest - bits) : 0;
    ASSERT_EQ(filled, 1u << code->longest);
    ASSERT_LE(code->longest, kMaxCodeBits);
  }
  EXPECT_GT(codes, 100);
}

}  // namespace
}  // namespace maxport::zstd
