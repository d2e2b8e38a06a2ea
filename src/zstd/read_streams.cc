#include "zstd/read_streams.h"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zstd/read_streams.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

// No vectors here; but shifts by a register cost a third with the instructions that come with AVX2.
HWY_BEFORE_NAMESPACE();
namespace maxport::zstd::HWY_NAMESPACE {

constexpr int kLookups = 5;       // between two loads: 55 bits of the 56 that are there at least
constexpr size_t kSymbols = 4;    // that a lookup writes, if not counts
constexpr size_t kLoadBytes = 8;
static_assert(kLookups * kMaxCodeBits + 8 <= 64);

/// A stream from its end to its beginning. The next bits are the highest of `held`, whose lowest set bit tells how many of
/// the loaded ones are used up.
struct Reader {
  const std::byte* in;
  std::byte* out;
  uint64_t held;
};

HWY_INLINE void load(Reader& reader) {
  const auto used = static_cast<unsigned>(std::countr_zero(reader.held));
  reader.in -= used >> 3;
  reader.held = (load_le<uint64_t>(reader.in) | 1) << (used & 7);
}

HWY_INLINE void look_up(Reader& reader, const ReadTable& table) {
  const ReadEntry& entry = table[reader.held >> (64 - kMaxCodeBits)];
  store_le(entry.symbols, reader.out);
  reader.held <<= entry.bits & 63;
  reader.out += entry.count;
}

/// Steps in which the stream cannot leave its input or output, whatever it holds.
size_t safe_steps(const Stream& stream, const Reader& reader) {
  const auto left = static_cast<size_t>(reader.in - stream.in.data());
  const auto room = static_cast<size_t>(stream.out.data() + stream.out.size() - reader.out);
  return std::min(left / (kLoadBytes - 1), room / (kLookups * kSymbols));
}

/// All four streams side by side, as each waits for its table; until one is near its end. Not a loop over an array: the
/// readers would not stay in registers.
void read_four(const std::array<Stream, 4>& streams, const ReadTable& table, std::array<Reader, 4>& readers) {
  auto [a, b, c, d] = readers;
  for (;;) {
    size_t steps = std::min({safe_steps(streams[0], a), safe_steps(streams[1], b), safe_steps(streams[2], c), safe_steps(streams[3], d)});
    if (steps == 0) break;
    for (; steps > 0; --steps) {
      for (int i = 0; i < kLookups; ++i) {
        look_up(a, table);
        look_up(b, table);
        look_up(c, table);
        look_up(d, table);
      }
      load(a);
      load(b);
      load(c);
      load(d);
    }
  }
  readers = {a, b, c, d};
}

void read_one(const Stream& stream, const ReadTable& table, Reader& reader) {
  Reader r = reader;
  while (safe_steps(stream, r) > 0) {
    for (int i = 0; i < kLookups; ++i) look_up(r, table);
    load(r);
  }
  reader = r;
}

/// What is left of a stream, symbol by symbol. `left` is where in it the next bits begin.
bool read_rest(const Stream& stream, const ReadTable& table, std::byte* out, size_t left) {
  std::byte* const end = stream.out.data() + stream.out.size();
  while (out < end) {
    uint64_t index = 0;
    for (size_t bit = 0; bit < kMaxCodeBits; ++bit) {
      const size_t at = left - 1 - bit;
      index = index << 1 | (bit < left ? static_cast<uint64_t>(stream.in[at / 8]) >> (at % 8) & 1 : 0);
    }
    const ReadEntry& entry = table[index];
    if (entry.first_bits > left) return false;
    left -= entry.first_bits;
    *out++ = static_cast<std::byte>(entry.symbols);
  }
  return left == 0;
}

bool read_streams_any(const std::array<Stream, 4>& streams, const ReadTable& table) {
  std::array<Reader, 4> readers;
  bool long_enough = true;
  for (size_t i = 0; i < 4; ++i) {
    const ByteSpan in = streams[i].in;
    if (in.empty() || in.back() == std::byte{0}) return false;
    if (in.size() < kLoadBytes) {
      long_enough = false;
      continue;
    }
    const auto mark = static_cast<unsigned>(9 - std::bit_width(static_cast<unsigned>(in.back())));
    const std::byte* at = in.data() + in.size() - kLoadBytes;
    readers[i] = {at, streams[i].out.data(), (load_le<uint64_t>(at) | 1) << mark};
  }
  if (long_enough) {
    read_four(streams, table, readers);
    for (size_t i = 0; i < 4; ++i) read_one(streams[i], table, readers[i]);
  }
  for (size_t i = 0; i < 4; ++i) {
    const ByteSpan in = streams[i].in;
    size_t left = 8 * in.size() - 9 + static_cast<size_t>(std::bit_width(static_cast<unsigned>(in.back())));
    std::byte* out = streams[i].out.data();
    if (long_enough) {
      left = 8 * (static_cast<size_t>(readers[i].in - in.data()) + kLoadBytes) - static_cast<size_t>(std::countr_zero(readers[i].held));
      out = readers[i].out;
    }
    if (!read_rest(streams[i], table, out, left)) return false;
  }
  return true;
}

}  // namespace maxport::zstd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maxport::zstd {
HWY_EXPORT(read_streams_any);

bool read_streams(const std::array<Stream, 4>& streams, const ReadTable& table) {
  return HWY_DYNAMIC_DISPATCH(read_streams_any)(streams, table);
}

void fill_read_table(const HuffmanCode& code, ReadTable& table) {
  constexpr size_t kEntries = size_t{1} << kMaxCodeBits;
  std::array<uint8_t, kEntries> symbol, bits;
  for (size_t value = 0; value < 256; ++value) {
    if (code.bits[value] == 0) continue;
    const int unused = kMaxCodeBits - code.bits[value];
    std::fill_n(symbol.begin() + (code.codes[value] << unused), size_t{1} << unused, static_cast<uint8_t>(value));
    std::fill_n(bits.begin() + (code.codes[value] << unused), size_t{1} << unused, code.bits[value]);
  }
  for (size_t i = 0; i < kEntries; ++i) {
    ReadEntry& entry = table[i];
    entry = {.symbols = symbol[i], .bits = bits[i], .count = 1, .first_bits = bits[i], .unused = 0};
    while (entry.count < 4) {
      const size_t next = i << entry.bits & (kEntries - 1);
      if (entry.bits + bits[next] > kMaxCodeBits) break;
      entry.symbols |= static_cast<uint32_t>(symbol[next]) << (8 * entry.count++);
      entry.bits = static_cast<uint8_t>(entry.bits + bits[next]);
    }
  }
}

}  // namespace maxport::zstd
#endif
