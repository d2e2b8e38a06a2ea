#include "zstd/write_stream.h"

#include <algorithm>

#include "zstd/bit_stream.h"

#undef HWY_DISABLED_TARGETS
// Nothing has SSSE3 that has not SSE4; vectors without a size known to the compiler cannot form the lanes below.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zstd/write_stream.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace maxport::zstd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The symbols before `end`, the last first, one after another.
HWY_INLINE void write_symbols(const std::byte* begin, const std::byte* end, const HuffmanCode& code, BitWriter& bits) {
  while (end > begin) {
    const auto symbol = static_cast<uint8_t>(*--end);
    bits.add(code.codes[symbol], code.bits[symbol]);
    bits.flush();
  }
}

/// The same for a code without a window, four symbols between two flushes.
HWY_INLINE void write_many(const std::byte* begin, const std::byte* end, const HuffmanCode& code, BitWriter& bits) {
  static_assert(4 * kMaxCodeBits + 7 <= 64);
  for (; end - begin >= 4; end -= 4) {
    for (int i = 1; i <= 4; ++i) {
      const auto symbol = static_cast<uint8_t>(end[-i]);
      bits.add(code.codes[symbol], code.bits[symbol]);
    }
    bits.flush();
  }
  write_symbols(begin, end, code, bits);
}

#if HWY_TARGET == HWY_SCALAR || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__

const std::byte* write_window(const std::byte*, const std::byte* end, const StreamCode&, BitWriter&) { return end; }

#else

using D8 = hn::CappedTag<uint8_t, 32>;
using D16 = hn::Repartition<uint16_t, D8>;
using D32 = hn::Repartition<uint32_t, D8>;
using D64 = hn::Repartition<uint64_t, D8>;
constexpr size_t kLanes = hn::MaxLanes(D64());

/// Codes of the eight bytes in each lane, the last lowest, and how many bits they have together.
struct Joined {
  hn::Vec<D64> codes, bits;
};

/// Joins the codes of neighbours: of each half lane, `lower` comes first and goes above `upper`.
HWY_INLINE Joined join_codes(hn::Vec<D8> codes, hn::Vec<D8> bits, hn::Vec<D8> powers) {
  const D16 d16;
  const D32 d32;
  const D64 d64;
  const auto c8 = hn::BitCast(d16, codes), b8 = hn::BitCast(d16, bits);
  const auto low8 = hn::Set(d16, 0xFF);
  // There is no shift of 16-bit lanes by different counts before AVX-512; a product with the power is one.
  const auto c16 = hn::Or(hn::Mul(hn::And(c8, low8), hn::ShiftRight<8>(hn::BitCast(d16, powers))), hn::ShiftRight<8>(c8));
  const auto b16 = hn::Add(hn::And(b8, low8), hn::ShiftRight<8>(b8));
  const auto x16 = hn::BitCast(d32, c16), y16 = hn::BitCast(d32, b16);
  const auto low16 = hn::Set(d32, 0xFFFF);
  const auto upper16 = hn::ShiftRight<16>(y16);
  const auto c32 = hn::Or(hn::Shl(hn::And(x16, low16), upper16), hn::ShiftRight<16>(x16));
  const auto b32 = hn::Add(hn::And(y16, low16), upper16);
  const auto x32 = hn::BitCast(d64, c32), y32 = hn::BitCast(d64, b32);
  const auto low32 = hn::Set(d64, 0xFFFFFFFF);
  const auto upper32 = hn::ShiftRight<32>(y32);
  return {hn::Or(hn::Shl(hn::And(x32, low32), upper32), hn::ShiftRight<32>(x32)), hn::Add(hn::And(y32, low32), upper32)};
}

/// Whole vectors of symbols before `end`. Returns where it stopped.
const std::byte* write_window(const std::byte* begin, const std::byte* end, const StreamCode& code, BitWriter& writer) {
  // A copy, which stays in registers: what is written could else be part of it.
  BitWriter bits = writer;
  static_assert(8 * kWindowBits + 7 <= 64);
  const D8 d8;
  const D16 d16;
  const auto codes = hn::LoadDup128(d8, code.codes.data()), lengths = hn::LoadDup128(d8, code.bits.data()),
             powers = hn::LoadDup128(d8, code.powers.data());
  const auto first = hn::Set(d8, code.window_begin), seven_bits = hn::Set(d8, 0x7F), size = hn::Set(d8, kWindowMagnitudes),
             sign = hn::Set(d8, 8);
  constexpr ptrdiff_t kStep = 8 * kLanes;
  for (; end - begin >= kStep; end -= kStep) {
    const auto in = hn::LoadU(d8, reinterpret_cast<const uint8_t*>(end - kStep));
    const auto magnitude = hn::Sub(hn::And(in, seven_bits), first);
    if (HWY_UNLIKELY(!hn::AllTrue(d8, hn::Lt(magnitude, size)))) {
      write_symbols(end - kStep, end, code.huffman, bits);
      continue;
    }
    const auto high = hn::And(hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, in))), sign);
    const auto index = hn::Or(magnitude, high);
    const Joined joined = join_codes(hn::TableLookupBytes(codes, index), hn::TableLookupBytes(lengths, index),
                                     hn::TableLookupBytes(powers, index));
    alignas(32) uint64_t lane_codes[kLanes], lane_bits[kLanes];
    hn::Store(joined.codes, D64(), lane_codes);
    hn::Store(joined.bits, D64(), lane_bits);
    for (size_t lane = kLanes; lane-- > 0;) {
      bits.add(lane_codes[lane], static_cast<unsigned>(lane_bits[lane]));
      bits.flush();
    }
  }
  writer = bits;
  return end;
}

#endif

std::byte* write_stream_any(ByteSpan in, const StreamCode& code, std::byte* out) {
  BitWriter bits(out);
  const std::byte *const begin = in.data(), *end = begin + in.size();
  if (code.has_window) end = write_window(begin, end, code, bits);
  write_many(begin, end, code.huffman, bits);
  bits.finish();
  return bits.end();
}

MagnitudeRange magnitude_range_any(ByteSpan in) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto* octets = reinterpret_cast<const uint8_t*>(in.data());
  const auto seven_bits = hn::Set(d, 0x7F);
  auto low = seven_bits, high = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= in.size(); i += lanes) {
    const auto magnitude = hn::And(hn::LoadU(d, octets + i), seven_bits);
    low = hn::Min(low, magnitude);
    high = hn::Max(high, magnitude);
  }
  HWY_ALIGN uint8_t lows[HWY_MAX_BYTES], highs[HWY_MAX_BYTES];
  hn::Store(low, d, lows);
  hn::Store(high, d, highs);
  MagnitudeRange range{*std::min_element(lows, lows + lanes), *std::max_element(highs, highs + lanes)};
  for (; i < in.size(); ++i) {
    const auto magnitude = static_cast<uint8_t>(octets[i] & 127);
    range = {std::min(range.lowest, magnitude), std::max(range.highest, magnitude)};
  }
  return range;
}

}  // namespace maxport::zstd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maxport::zstd {
HWY_EXPORT(write_stream_any);
HWY_EXPORT(magnitude_range_any);

MagnitudeRange magnitude_range(ByteSpan in) { return HWY_DYNAMIC_DISPATCH(magnitude_range_any)(in); }

std::byte* write_stream(ByteSpan in, const StreamCode& code, std::byte* out) {
  return HWY_DYNAMIC_DISPATCH(write_stream_any)(in, code, out);
}

}  // namespace maxport::zstd
#endif
