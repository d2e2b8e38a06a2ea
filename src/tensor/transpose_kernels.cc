#include "tensor/transpose_kernels.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.h"

#undef HWY_DISABLED_TARGETS
// Nothing has SSSE3 that has not SSE4; vectors without a size known to the compiler cannot form the blocks below.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/transpose_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "tensor/transpose_lanes-inl.h"

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

using Bytes16 = hn::FixedTag<uint8_t, 16>;
/// 32 bytes where there are such vectors: with longer ones the registers do not suffice.
using Bytes32 = hn::CappedTag<uint8_t, 32>;

/// The rows of a block are as many as fill a vector D when they have become a column (for bytes, half of it: there are
/// not enough registers), the columns as many as one vector of a row holds.
template <size_t kBytes, class D>
struct Block {
  using Element = hwy::UnsignedFromSize<kBytes>;
  static constexpr size_t kStep = 16 / kBytes;
  static constexpr bool kTwoSteps = kBytes > 1 && hn::MaxLanes(D()) == 32;
  static constexpr size_t kRows = kTwoSteps ? 2 * kStep : kStep;

  /// kStep rows from `row` on, transposed within each 16 bytes.
  static HWY_INLINE void load(const TransposeTile& tile, size_t row, size_t at, hn::Vec<D> (&v)[kStep]) {
    unrolled<kStep>([&](auto i) MAXPORT_INLINE_LAMBDA {
      v[i] = hn::LoadU(D(), reinterpret_cast<const uint8_t*>(tile.rows[row + i] + tile.offset + at));
    });
    transpose_lanes<Element, std::bit_width(kStep) - 1>(D(), v);
  }

  static HWY_INLINE void move(const TransposeTile& tile, size_t row, size_t at) {
    const D d;
    uint8_t* out = reinterpret_cast<uint8_t*>(tile.out + at / kBytes * tile.out_stride + row * kBytes);
    const size_t stride = tile.out_stride;
    hn::Vec<D> v[kStep];
    load(tile, row, at, v);
    if constexpr (kTwoSteps) {
      hn::Vec<D> next[kStep];
      load(tile, row + kStep, at, next);
      unrolled<kStep>([&](auto i) MAXPORT_INLINE_LAMBDA {
        hn::StoreU(hn::ConcatLowerLower(d, next[i], v[i]), d, out + i * stride);
        hn::StoreU(hn::ConcatUpperUpper(d, next[i], v[i]), d, out + (i + kStep) * stride);
      });
    } else if constexpr (hn::MaxLanes(D()) == 32) {
      unrolled<kStep>([&](auto i) MAXPORT_INLINE_LAMBDA {
        hn::StoreU(hn::LowerHalf(v[i]), Bytes16(), out + i * stride);
        hn::StoreU(hn::UpperHalf(Bytes16(), v[i]), Bytes16(), out + (i + kStep) * stride);
      });
    } else {
      unrolled<kStep>([&](auto i) MAXPORT_INLINE_LAMBDA { hn::StoreU(v[i], d, out + i * stride); });
    }
  }
};

/// Asks for rows `first` and on of the next tile, which the caches would not foresee.
HWY_INLINE void fetch_next(const TransposeTile& tile, size_t first, size_t count, size_t bytes) {
  const size_t end = std::min(first + count, tile.next_count);
  for (size_t row = first; row < end; ++row)
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(tile.next_rows[row] + tile.next_offset + at, 0, 3);
}

/// Full blocks; the last of each direction overlaps its neighbour, which writes the same bytes twice.
template <size_t kBytes, class D>
bool transpose_blocks(const TransposeTile& tile) {
  constexpr size_t kRows = Block<kBytes, D>::kRows, kWidth = hn::MaxLanes(D());
  const size_t bytes = tile.columns * kBytes;
  if (tile.row_count < kRows || bytes < kWidth) return false;
  const size_t last_row = tile.row_count - kRows, last_at = bytes - kWidth;
  for (size_t row = 0;; row = std::min(row + kRows, last_row)) {
    fetch_next(tile, row, kRows, bytes);
    for (size_t at = 0;; at = std::min(at + kWidth, last_at)) {
      Block<kBytes, D>::move(tile, row, at);
      if (at == last_at) break;
    }
    if (row == last_row) return true;
  }
}

template <size_t kBytes>
void transpose_tile(const TransposeTile& tile) {
  if constexpr (kBytes < 16)
    if (transpose_blocks<kBytes, Bytes32>(tile) || transpose_blocks<kBytes, Bytes16>(tile)) return;
  transpose_elements<kBytes>(tile);
}

void scatter_runs(const std::byte* in, size_t in_stride, size_t run_bytes, std::byte* const* runs, size_t count) {
  const hn::ScalableTag<uint8_t> wide;
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
