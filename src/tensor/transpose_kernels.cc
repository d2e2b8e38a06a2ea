#include "tensor/transpose_kernels.h"

#include <cstdint>
#include <cstring>

#include "base/error.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_SSSE3  // nothing has it that has not SSE4
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/transpose_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace maxport::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One element at a time, the longer side innermost.
template <size_t kBytes>
void transpose_elements(const TransposeTile& tile) {
  const auto move = [&](size_t r, size_t c) {
    std::memcpy(tile.out + c * tile.out_stride + r * kBytes, tile.rows[r] + tile.offset + c * kBytes, kBytes);
  };
  if (tile.columns >= tile.row_count) {
    for (size_t r = 0; r < tile.row_count; ++r)
      for (size_t c = 0; c < tile.columns; ++c) move(r, c);
  } else {
    for (size_t c = 0; c < tile.columns; ++c)
      for (size_t r = 0; r < tile.row_count; ++r) move(r, c);
  }
}

#if HWY_TARGET == HWY_SCALAR

void scatter_runs(const std::byte* in, size_t in_stride, size_t run_bytes, std::byte* const* runs, size_t count) {
  for (size_t i = 0; i < count; ++i) std::memcpy(runs[i], in + i * in_stride, run_bytes);
}

template <size_t kBytes>
void transpose_tile(const TransposeTile& tile) {
  transpose_elements<kBytes>(tile);
}

#else

// A block is as many rows as fit 16 bytes when they have become a column. Vectors longer than 16 bytes hold several
// blocks side by side, and every step below works within 16 bytes.
template <size_t kBytes>
inline constexpr size_t kBlockRows = 16 / kBytes;

using Block = hn::FixedTag<uint8_t, 16>;
#if HWY_HAVE_SCALABLE
using Wide = Block;
#else
using Wide = hn::ScalableTag<uint8_t>;
#endif

template <class D>
using As16 = hn::Repartition<uint16_t, D>;
template <class D>
using As32 = hn::Repartition<uint32_t, D>;
template <class D>
using As64 = hn::Repartition<uint64_t, D>;

/// Interleaves the elements of two rows in units of T: of each 16 bytes the lower eight into `a`, the upper into `b`.
template <class T, class D>
HWY_INLINE void interleave(D d, hn::Vec<D>& a, hn::Vec<D>& b) {
  const hn::Repartition<T, D> units;
  const auto x = hn::BitCast(units, a), y = hn::BitCast(units, b);
  a = hn::BitCast(d, hn::InterleaveLower(units, x, y));
  b = hn::BitCast(d, hn::InterleaveUpper(units, x, y));
}

/// Writes each 16 bytes of `v` to a place of its own, `stride` bytes apart.
template <class D>
HWY_INLINE void scatter_blocks(D d, hn::Vec<D> v, std::byte* out, size_t stride) {
  if constexpr (std::is_same_v<D, Block>) {
    hn::StoreU(v, d, reinterpret_cast<uint8_t*>(out));
  } else {
    const hn::Half<D> half;
    scatter_blocks(half, hn::LowerHalf(half, v), out, stride);
    scatter_blocks(half, hn::UpperHalf(half, v), out + hn::Lanes(half) / 16 * stride, stride);
  }
}

template <class D>
HWY_INLINE hn::Vec<D> load_row(D d, const TransposeTile& tile, size_t row, size_t at) {
  return hn::LoadU(d, reinterpret_cast<const uint8_t*>(tile.rows[row] + tile.offset + at));
}

/// Eight rows of 16-bit units to eight columns, in place: a becomes column 0 of each 16 bytes, and so on.
template <class D>
HWY_INLINE void transpose_8x8(D d, hn::Vec<D>& a, hn::Vec<D>& b, hn::Vec<D>& c, hn::Vec<D>& e, hn::Vec<D>& f,
                              hn::Vec<D>& g, hn::Vec<D>& h, hn::Vec<D>& i) {
  interleave<uint16_t>(d, a, b), interleave<uint16_t>(d, c, e);  // a: rows 01 columns 0-3, b: columns 4-7; c, e: rows 23
  interleave<uint16_t>(d, f, g), interleave<uint16_t>(d, h, i);  // rows 45, 67
  interleave<uint32_t>(d, a, c), interleave<uint32_t>(d, b, e);  // rows 0-3: a columns 01, c 23, b 45, e 67
  interleave<uint32_t>(d, f, h), interleave<uint32_t>(d, g, i);  // rows 4-7
  interleave<uint64_t>(d, a, f), interleave<uint64_t>(d, c, h);  // all rows: a column 0, f 1, c 2, h 3
  interleave<uint64_t>(d, b, g), interleave<uint64_t>(d, e, i);  // b 4, g 5, e 6, i 7
}

/// The blocks of one vector's width at row `r` and byte `at` of the rows.
template <size_t kBytes, class D>
HWY_INLINE void transpose_blocks(D d, const TransposeTile& tile, size_t r, size_t at) {
  const size_t step = tile.out_stride, next = 16 / kBytes * step;
  std::byte* out = tile.out + at / kBytes * step + r * kBytes;
  const auto row = [&](size_t k) HWY_ATTR { return load_row(d, tile, r + k, at); };
  const auto put = [&](size_t k, hn::Vec<D> v) HWY_ATTR { scatter_blocks(d, v, out + k * step, next); };
  if constexpr (kBytes == 8) {
    auto a = row(0), b = row(1);
    interleave<uint64_t>(d, a, b);
    put(0, a), put(1, b);
  } else if constexpr (kBytes == 4) {
    auto a = row(0), b = row(1), c = row(2), e = row(3);
    interleave<uint32_t>(d, a, b), interleave<uint32_t>(d, c, e);
    interleave<uint64_t>(d, a, c), interleave<uint64_t>(d, b, e);
    put(0, a), put(1, c), put(2, b), put(3, e);
  } else if constexpr (kBytes == 2) {
    auto a = row(0), b = row(1), c = row(2), e = row(3), f = row(4), g = row(5), h = row(6), i = row(7);
    transpose_8x8(d, a, b, c, e, f, g, h, i);
    put(0, a), put(1, f), put(2, c), put(3, h), put(4, b), put(5, g), put(6, e), put(7, i);
  } else {
    // Pairs of rows make 16-bit units: the first vector of each pair has columns 0-7, the second 8-15.
    auto a = row(0), b = row(2), c = row(4), e = row(6), f = row(8), g = row(10), h = row(12), i = row(14);
    auto a2 = row(1), b2 = row(3), c2 = row(5), e2 = row(7), f2 = row(9), g2 = row(11), h2 = row(13), i2 = row(15);
    interleave<uint8_t>(d, a, a2), interleave<uint8_t>(d, b, b2), interleave<uint8_t>(d, c, c2);
    interleave<uint8_t>(d, e, e2), interleave<uint8_t>(d, f, f2), interleave<uint8_t>(d, g, g2);
    interleave<uint8_t>(d, h, h2), interleave<uint8_t>(d, i, i2);
    transpose_8x8(d, a, b, c, e, f, g, h, i);
    put(0, a), put(1, f), put(2, c), put(3, h), put(4, b), put(5, g), put(6, e), put(7, i);
    transpose_8x8(d, a2, b2, c2, e2, f2, g2, h2, i2);
    put(8, a2), put(9, f2), put(10, c2), put(11, h2), put(12, b2), put(13, g2), put(14, e2), put(15, i2);
  }
}

/// Full blocks of vectors D; the last ones overlap their neighbours, which writes the same bytes twice.
template <size_t kBytes, class D>
void transpose_with(D d, const TransposeTile& tile) {
  const size_t width = hn::Lanes(d), bytes = tile.columns * kBytes;
  const size_t last_row = tile.row_count - kBlockRows<kBytes>, last_at = bytes - width;
  for (size_t r = 0;; r = r + kBlockRows<kBytes> < last_row ? r + kBlockRows<kBytes> : last_row) {
    for (size_t at = 0;; at = at + width < last_at ? at + width : last_at) {
      transpose_blocks<kBytes>(d, tile, r, at);
      if (at == last_at) break;
    }
    if (r == last_row) break;
  }
}

template <size_t kBytes>
void transpose_tile(const TransposeTile& tile) {
  if constexpr (kBytes == 16) return transpose_elements<kBytes>(tile);
  if constexpr (kBytes < 16) {
    const size_t bytes = tile.columns * kBytes;
    if (tile.row_count < kBlockRows<kBytes> || bytes < 16) return transpose_elements<kBytes>(tile);
    if (bytes >= hn::Lanes(Wide())) return transpose_with<kBytes>(Wide(), tile);
    transpose_with<kBytes>(Block(), tile);
  }
}

void scatter_runs(const std::byte* in, size_t in_stride, size_t run_bytes, std::byte* const* runs, size_t count) {
  const Wide wide;
  const size_t width = hn::Lanes(wide);
  if (run_bytes < width) {
    for (size_t i = 0; i < count; ++i) std::memcpy(runs[i], in + i * in_stride, run_bytes);
    return;
  }
  const size_t last = run_bytes - width;
  for (size_t i = 0; i < count; ++i) {
    const auto* from = reinterpret_cast<const uint8_t*>(in + i * in_stride);
    auto* to = reinterpret_cast<uint8_t*>(runs[i]);
    for (size_t at = 0; at < last; at += width) hn::StoreU(hn::LoadU(wide, from + at), wide, to + at);
    hn::StoreU(hn::LoadU(wide, from + last), wide, to + last);
  }
}

#endif

ScatterKernel find_scatter_kernel() { return scatter_runs; }

TransposeKernel find_transpose_kernel(size_t element_bytes) {
  switch (element_bytes) {
    case 1: return transpose_tile<1>;
    case 2: return transpose_tile<2>;
    case 4: return transpose_tile<4>;
    case 8: return transpose_tile<8>;
    case 16: return transpose_tile<16>;
    default: return nullptr;
  }
}

}  // namespace maxport::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maxport {

HWY_EXPORT(find_transpose_kernel);
HWY_EXPORT(find_scatter_kernel);

TransposeKernel transpose_kernel(size_t element_bytes) {
  const TransposeKernel kernel = HWY_DYNAMIC_DISPATCH(find_transpose_kernel)(element_bytes);
  MAXPORT_CHECK(kernel != nullptr);
  return kernel;
}

ScatterKernel scatter_kernel() { return HWY_DYNAMIC_DISPATCH(find_scatter_kernel)(); }

}  // namespace maxport
#endif
