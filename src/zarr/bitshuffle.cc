#include "zarr/bitshuffle.h"

#include <cstdint>
#include <cstring>

#include "base/error.h"

#undef HWY_DISABLED_TARGETS
// Nothing has SSSE3 that has not SSE4; vectors without a size known to the compiler cannot form the blocks below.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zarr/bitshuffle.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "tensor/transpose_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maxport::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Eight elements: kBytes * 8 bytes in, one byte for each bit of an element out, `stride` apart.
template <size_t kBytes>
void shuffle_group(const uint8_t* in, uint8_t* out, size_t stride) {
  for (size_t bit = 0; bit < 8 * kBytes; ++bit) {
    uint8_t plane = 0;
    for (size_t i = 0; i < 8; ++i) plane |= static_cast<uint8_t>((in[i * kBytes + bit / 8] >> (bit % 8) & 1) << i);
    out[bit * stride] = plane;
  }
}

template <size_t kBytes>
void unshuffle_group(const uint8_t* in, uint8_t* out, size_t stride) {
  std::memset(out, 0, 8 * kBytes);
  for (size_t bit = 0; bit < 8 * kBytes; ++bit)
    for (size_t i = 0; i < 8; ++i)
      out[i * kBytes + bit / 8] |= static_cast<uint8_t>((in[bit * stride] >> i & 1) << (bit % 8));
}

#if HWY_TARGET == HWY_SCALAR

template <size_t kBytes>
size_t shuffle_blocks(const uint8_t*, uint8_t*, size_t) { return 0; }
template <size_t kBytes>
size_t unshuffle_blocks(const uint8_t*, uint8_t*, size_t) { return 0; }

#else

using D = hn::CappedTag<uint8_t, 32>;
using D16 = hn::FixedTag<uint8_t, 16>;
using V = hn::Vec<D>;

/// Each 8 bytes as a matrix of 8 x 8 bits, transposed; its own inverse. (Warren, Hacker's Delight, 7-3.)
HWY_INLINE V transpose_bits(V bytes) {
  const hn::Repartition<uint64_t, D> d;
  auto x = hn::BitCast(d, bytes);
  const auto exchange = [&](auto shift, uint64_t mask) MAXPORT_INLINE_LAMBDA {
    const auto t = hn::And(hn::Xor(x, hn::ShiftRight<decltype(shift)::value>(x)), hn::Set(d, mask));
    x = hn::Xor(hn::Xor(x, t), hn::ShiftLeft<decltype(shift)::value>(t));
  };
  exchange(std::integral_constant<int, 7>(), 0x00AA00AA00AA00AAu);
  exchange(std::integral_constant<int, 14>(), 0x0000CCCC0000CCCCu);
  exchange(std::integral_constant<int, 28>(), 0x00000000F0F0F0F0u);
  return hn::BitCast(D(), x);
}

/// 16 bytes from `in`, and in the upper half of a longer vector 16 bytes from `in + apart`.
template <class Tag>
HWY_INLINE hn::Vec<Tag> load_pair(Tag d, const uint8_t* in, size_t apart) {
  if constexpr (hn::MaxLanes(d) == 32)
    return hn::Combine(d, hn::LoadU(D16(), in + apart), hn::LoadU(D16(), in));
  else
    return hn::LoadU(d, in);
}

template <class Tag>
HWY_INLINE void store_pair(Tag d, hn::Vec<Tag> v, uint8_t* out, size_t apart) {
  if constexpr (hn::MaxLanes(d) == 32) {
    hn::StoreU(hn::LowerHalf(D16(), v), D16(), out);
    hn::StoreU(hn::UpperHalf(D16(), v), D16(), out + apart);
  } else {
    hn::StoreU(v, d, out);
  }
}

/// Of 16 bytes, as 8 elements of 2 or 4 of 4: the first bytes of all, then the second ones, and so on.
template <size_t kBytes>
HWY_INLINE V bytes_apart(V v) {
  alignas(16) static constexpr uint8_t kOf2[16] = {0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15};
  alignas(16) static constexpr uint8_t kOf4[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  return hn::TableLookupBytes(v, hn::LoadDup128(D(), kBytes == 2 ? kOf2 : kOf4));
}

template <size_t kBytes>
HWY_INLINE V bytes_together(V v) {
  alignas(16) static constexpr uint8_t kOf2[16] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
  alignas(16) static constexpr uint8_t kOf4[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  return hn::TableLookupBytes(v, hn::LoadDup128(D(), kBytes == 2 ? kOf2 : kOf4));
}

/// Of [byte 0 of elements 0 to 3, byte 0 of 4 to 7, byte 1 of 0 to 3, byte 1 of 4 to 7]: elements 0 to 3 first.
HWY_INLINE V words_apart(V v) {
  alignas(16) static constexpr uint8_t kOrder[16] = {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15};
  return hn::TableLookupBytes(v, hn::LoadDup128(D(), kOrder));
}

/// Groups of 8 elements that a step takes: 16 rows for the transposition in each 16 bytes of a vector.
constexpr size_t kStepGroups = hn::MaxLanes(D());

/// Planes `first` to `first` + 15 of kStepGroups groups from `in` on. `half` chooses 16 bytes of a group of 4-byte
/// elements after their bytes were sorted.
template <size_t kBytes>
HWY_INLINE void load_groups(const uint8_t* in, size_t half, V (&v)[16]) {
  constexpr size_t kGroup = 8 * kBytes;
  unrolled<16>([&](auto i) MAXPORT_INLINE_LAMBDA {
    const uint8_t* group = in + i * kGroup;
    if constexpr (kBytes == 2) {
      v[i] = bytes_apart<2>(load_pair(D(), group, 16 * kGroup));
    } else {
      const hn::Repartition<uint32_t, D> words;
      const auto a = hn::BitCast(words, bytes_apart<4>(load_pair(D(), group, 16 * kGroup)));
      const auto b = hn::BitCast(words, bytes_apart<4>(load_pair(D(), group + 16, 16 * kGroup)));
      v[i] = hn::BitCast(D(), half == 0 ? hn::InterleaveLower(words, a, b) : hn::InterleaveUpper(words, a, b));
    }
    v[i] = transpose_bits(v[i]);
  });
}

/// As many groups of 8 elements as make whole steps; returns how many. A plane has `groups` bytes.
template <size_t kBytes>
size_t shuffle_blocks(const uint8_t* in, uint8_t* out, size_t groups) {
  size_t done = 0;
  for (; done + kStepGroups <= groups; done += kStepGroups)
    for (size_t half = 0; half < kBytes / 2; ++half) {
      V v[16];
      load_groups<kBytes>(in + done * 8 * kBytes, half, v);
      transpose_lanes<uint8_t, 4>(D(), v);
      unrolled<16>([&](auto i) MAXPORT_INLINE_LAMBDA { hn::StoreU(v[i], D(), out + (half * 16 + i) * groups + done); });
    }
  return done;
}

HWY_INLINE void load_planes(const uint8_t* in, size_t groups, V (&v)[16]) {
  unrolled<16>([&](auto i) MAXPORT_INLINE_LAMBDA { v[i] = hn::LoadU(D(), in + i * groups); });
  transpose_lanes<uint8_t, 4>(D(), v);
  unrolled<16>([&](auto i) MAXPORT_INLINE_LAMBDA { v[i] = transpose_bits(v[i]); });
}

template <size_t kBytes>
size_t unshuffle_blocks(const uint8_t* in, uint8_t* out, size_t groups) {
  constexpr size_t kGroup = 8 * kBytes;
  size_t done = 0;
  for (; done + kStepGroups <= groups; done += kStepGroups) {
    V low[16];
    load_planes(in + done, groups, low);
    uint8_t* to = out + done * kGroup;
    if constexpr (kBytes == 2) {
      unrolled<16>([&](auto i) MAXPORT_INLINE_LAMBDA { store_pair(D(), bytes_together<2>(low[i]), to + i * kGroup, 16 * kGroup); });
    } else {
      V high[16];
      load_planes(in + 16 * groups + done, groups, high);
      unrolled<16>([&](auto i) MAXPORT_INLINE_LAMBDA {
        const hn::Repartition<uint64_t, D> pairs;
        const auto a = hn::BitCast(pairs, words_apart(low[i])), b = hn::BitCast(pairs, words_apart(high[i]));
        const V first = hn::BitCast(D(), hn::InterleaveLower(pairs, a, b));
        const V second = hn::BitCast(D(), hn::InterleaveUpper(pairs, a, b));
        store_pair(D(), bytes_together<4>(first), to + i * kGroup, 16 * kGroup);
        store_pair(D(), bytes_together<4>(second), to + i * kGroup + 16, 16 * kGroup);
      });
    }
  }
  return done;
}

#endif

template <size_t kBytes>
void shuffle(const uint8_t* in, uint8_t* out, size_t groups) {
  for (size_t i = shuffle_blocks<kBytes>(in, out, groups); i < groups; ++i)
    shuffle_group<kBytes>(in + i * 8 * kBytes, out + i, groups);
}

template <size_t kBytes>
void unshuffle(const uint8_t* in, uint8_t* out, size_t groups) {
  for (size_t i = unshuffle_blocks<kBytes>(in, out, groups); i < groups; ++i)
    unshuffle_group<kBytes>(in + i, out + i * 8 * kBytes, groups);
}

void shuffle_any(size_t element_bytes, const uint8_t* in, uint8_t* out, size_t groups) {
  element_bytes == 2 ? shuffle<2>(in, out, groups) : shuffle<4>(in, out, groups);
}

void unshuffle_any(size_t element_bytes, const uint8_t* in, uint8_t* out, size_t groups) {
  element_bytes == 2 ? unshuffle<2>(in, out, groups) : unshuffle<4>(in, out, groups);
}

}  // namespace maxport::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maxport {
HWY_EXPORT(shuffle_any);
HWY_EXPORT(unshuffle_any);

namespace zarr {
namespace {

const uint8_t* octets(ByteSpan bytes) { return reinterpret_cast<const uint8_t*>(bytes.data()); }
uint8_t* octets(MutableByteSpan bytes) { return reinterpret_cast<uint8_t*>(bytes.data()); }

}  // namespace

bool has_bitshuffle(size_t element_bytes) { return element_bytes == 2 || element_bytes == 4; }

void bitshuffle(size_t element_bytes, ByteSpan in, MutableByteSpan out) {
  MAXPORT_CHECK(has_bitshuffle(element_bytes) && in.size() == out.size() && in.size() % (8 * element_bytes) == 0);
  HWY_DYNAMIC_DISPATCH(shuffle_any)(element_bytes, octets(in), octets(out), in.size() / (8 * element_bytes));
}

void bitunshuffle(size_t element_bytes, ByteSpan in, MutableByteSpan out) {
  MAXPORT_CHECK(has_bitshuffle(element_bytes) && in.size() == out.size() && in.size() % (8 * element_bytes) == 0);
  HWY_DYNAMIC_DISPATCH(unshuffle_any)(element_bytes, octets(in), octets(out), in.size() / (8 * element_bytes));
}

}  // namespace zarr
}  // namespace maxport
#endif
