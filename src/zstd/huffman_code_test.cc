#include "zstd/huffman_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace maxport::zstd {
namespace {

uint64_t total(std::span<const uint32_t> counts, std::span<const uint8_t> bits) {
  return std::inner_product(counts.begin(), counts.end(), bits.begin(), uint64_t{0});
}

/// 1 for a complete code.
double kraft(std::span<const uint8_t> bits) {
  double sum = 0;
  for (uint8_t b : bits) sum += b ? std::ldexp(1.0, -b) : 0;
  return sum;
}

/// The smallest total of all complete codes, by trying every length for every symbol.
uint64_t smallest_total(std::span<const uint32_t> counts, int limit, std::vector<uint8_t>& bits) {
  if (bits.size() == counts.size()) return kraft(bits) == 1 ? total(counts, bits) : UINT64_MAX;
  uint64_t best = UINT64_MAX;
  for (int b = 1; b <= limit; ++b) {
    bits.push_back(static_cast<uint8_t>(b));
    best = std::min(best, smallest_total(counts, limit, bits));
    bits.pop_back();
  }
  return best;
}

TEST(LimitedLengths, AreTheBestThereAre) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const int limit = 3 + static_cast<int>(random() % 2);
    std::vector<uint32_t> counts(2 + random() % (limit == 3 ? 6 : 4));
    for (uint32_t& count : counts) count = 1 + random() % (random() % 4 ? 10 : 100000);
    std::ranges::sort(counts);
    std::vector<uint8_t> bits(counts.size()), tried;
    limited_lengths(counts, limit, bits);
    ASSERT_EQ(kraft(bits), 1);
    ASSERT_LE(std::ranges::max(bits), limit);
    ASSERT_EQ(total(counts, bits), smallest_total(counts, limit, tried)) << testing::PrintToString(counts) << " in " << limit;
  }
}

TEST(LimitedLengths, HoldTheLimitWhenCountsGrowLikeFibonacciNumbers) {
  std::vector<uint32_t> counts{1, 1};
  while (counts.size() < 30) counts.push_back(counts[counts.size() - 1] + counts[counts.size() - 2]);
  for (int limit : {5, 6, 11}) {
    std::vector<uint8_t> bits(counts.size());
    limited_lengths(counts, limit, bits);
    EXPECT_EQ(kraft(bits), 1);
    EXPECT_EQ(std::ranges::max(bits), limit);
    EXPECT_TRUE(std::ranges::is_sorted(bits, std::greater())) << "rarer symbols have longer codes";
  }
}

TEST(OptimalCode, IsCanonicalAndFreeOfPrefixes) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    std::array<uint32_t, 256> counts = {};
    const unsigned symbols = 2 + random() % 255;
    for (unsigned s = 0; s < symbols; ++s) counts[random() % 256] = 1 + random() % 1000;
    if (std::ranges::count(counts, 0u) > 254) continue;
    const HuffmanCode code = optimal_code(counts, kMaxCodeBits);
    ASSERT_EQ(kraft(code.bits), 1);
    ASSERT_EQ(code.longest, std::ranges::max(code.bits));
    // As intervals of all numbers of `longest` bits, the codes follow each other without gap: longer ones first, then by value.
    std::vector<std::pair<int, size_t>> order;
    for (size_t s = 0; s < 256; ++s) {
      ASSERT_EQ(code.bits[s] > 0, counts[s] > 0);
      if (code.bits[s]) order.push_back({-code.bits[s], s});
    }
    std::ranges::sort(order);
    unsigned next = 0;
    for (auto [negative, s] : order) {
      const int unused = code.longest - code.bits[s];
      ASSERT_EQ(unsigned{code.codes[s]} << unused, next) << s;
      next += 1u << unused;
    }
    ASSERT_EQ(next, 1u << code.longest);
  }
}

}  // namespace
}  // namespace maxport::zstd
