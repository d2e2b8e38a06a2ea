#include "zstd/stream_code.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "zstd/write_stream.h"

namespace maxport::zstd {
namespace {

/// Of each stretch, the first bytes are counted.
constexpr size_t kStretch = 4096, kCounted = 128;
/// Two bytes of noise are equal in 1 of 256 cases; codes are worth a try from so many 256ths of that on.
constexpr uint64_t kUneven = 290;
/// A range of more magnitudes is counted whole: it may have holes.
constexpr int kNarrowRange = 12;
/// A window must hold all bytes but one of so many; the others hold up whole vectors.
constexpr uint64_t kOutsideOne = 200;
/// So many values outside the window find place below the longest code in it.
constexpr size_t kMostOutside = size_t{1} << (kMaxCodeBits - kWindowBits);

/// Counts in two tables, as equal neighbours would wait for each other in one.
class Counter {
 public:
  void add(ByteSpan in) {
    size_t i = 0;
    for (; i + 2 <= in.size(); i += 2) {
      ++even_[static_cast<uint8_t>(in[i])];
      ++odd_[static_cast<uint8_t>(in[i + 1])];
    }
    if (i < in.size()) ++even_[static_cast<uint8_t>(in[i])];
  }
  Counts sum() const {
    Counts counts;
    std::ranges::transform(even_, odd_, counts.begin(), std::plus());
    return counts;
  }

 private:
  Counts even_ = {}, odd_ = {};
};

struct Symbol {
  uint32_t count;
  uint32_t value;
  auto operator<=>(const Symbol&) const = default;
};

/// Stands for all symbols outside the window while the codes of those inside are made.
constexpr uint32_t kOutside = 256;

/// Gives the symbols codes of at most `limit` bits, put after a prefix of `prefix` bits. Returns the bits of kOutside.
int add_lengths(std::vector<Symbol>& symbols, int limit, int prefix, HuffmanCode& code) {
  std::ranges::sort(symbols);
  std::array<uint32_t, 257> counts;
  std::array<uint8_t, 257> bits = {};
  std::ranges::transform(symbols, counts.begin(), &Symbol::count);
  if (symbols.size() > 1) limited_lengths(std::span(counts).first(symbols.size()), limit, std::span(bits).first(symbols.size()));
  int outside = 0;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].value == kOutside) outside = bits[i];
    else code.bits[symbols[i].value] = static_cast<uint8_t>(prefix + bits[i]);
  }
  return outside;
}

uint64_t window_sum(const Counts& counts, int begin) {
  const auto sum = [&](int from) { return std::accumulate(counts.begin() + from, counts.begin() + from + kWindowMagnitudes, uint64_t{0}); };
  return sum(begin) + sum(begin + 128);
}

bool in_window(uint32_t value, int begin) {
  const int magnitude = static_cast<int>(value & 127);
  return magnitude >= begin && magnitude < begin + kWindowMagnitudes;
}

/// Where the window with the most bytes begins.
int best_window(const Counts& counts) {
  int best = 0;
  uint64_t most = 0;
  for (int begin = 0; begin + kWindowMagnitudes <= 128; ++begin)
    if (const uint64_t sum = window_sum(counts, begin); sum > most) best = begin, most = sum;
  return best;
}

/// False when this window does not suit.
bool make_window_code(const Counts& counts, int begin, StreamCode& out) {
  std::vector<Symbol> inside, outside;
  uint32_t count_outside = 0;
  for (uint32_t value = 0; value < 256; ++value) {
    if (counts[value] == 0) continue;
    (in_window(value, begin) ? inside : outside).push_back({counts[value], value});
    if (!in_window(value, begin)) count_outside += counts[value];
  }
  if (outside.size() > kMostOutside || window_sum(counts, begin) < count_outside * kOutsideOne) return false;
  if (!outside.empty()) inside.push_back({count_outside, kOutside});
  if (inside.size() < 2) return false;
  const int prefix = add_lengths(inside, kWindowBits, 0, out.huffman);
  add_lengths(outside, kMaxCodeBits - prefix, prefix, out.huffman);
  assign_codes(out.huffman);
  return true;
}

void fill_window(int begin, StreamCode& out) {
  out.has_window = true;
  out.window_begin = static_cast<uint8_t>(begin);
  for (size_t i = 0; i < 16; ++i) {
    const size_t value = static_cast<size_t>(begin) + i % 8 + (i / 8) * 128;
    out.codes[i] = static_cast<uint8_t>(out.huffman.codes[value]);
    out.bits[i] = out.huffman.bits[value];
    out.powers[i] = static_cast<uint8_t>(1u << out.bits[i]);
  }
}

}  // namespace

Counts count_sample(ByteSpan in) {
  Counter counter;
  for (size_t at = 0; at < in.size(); at += kStretch) counter.add(in.subspan(at, std::min(kCounted, in.size() - at)));
  return counter.sum();
}

bool looks_uneven(const Counts& sample) {
  uint64_t all = 0, pairs = 0;
  for (uint64_t count : sample) {
    all += count;
    pairs += count * (count - (count > 0));
  }
  // Pairs of equal bytes among all pairs: one in 256 for noise.
  return pairs * 256 * 256 > all * all * kUneven;
}

void complete_counts(ByteSpan in, Counts& sample) {
  const MagnitudeRange range = magnitude_range(in);
  if (range.highest - range.lowest >= kNarrowRange || in.size() < kStretch) {
    Counter counter;
    counter.add(in);
    sample = counter.sum();
    return;
  }
  for (unsigned value = range.lowest; value <= range.highest; ++value)
    for (unsigned sign : {0u, 128u}) sample[value | sign] += sample[value | sign] == 0;
}

StreamCode make_stream_code(const Counts& counts) {
  StreamCode code;
  const int begin = best_window(counts);
  if (make_window_code(counts, begin, code)) fill_window(begin, code);
  else code.huffman = optimal_code(counts, kMaxCodeBits);
  return code;
}

}  // namespace maxport::zstd
