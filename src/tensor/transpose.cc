#include "tensor/transpose.h"

#include <algorithm>
#include <array>

#include "tensor/transpose_kernels.h"

namespace maxport {
namespace {

/// A tile is read in runs of several cache lines of the source and written in runs of several lines of the target,
/// through a buffer that stays in the first-level cache. So each line of either side is touched once, and row strides
/// that are powers of two, usual for weights, do little harm. The sizes are the best of a sweep.
constexpr int64_t kStageBytes = 32 << 10;
constexpr int64_t kSourceRun = 256, kTargetRun = 512;
constexpr int64_t kMinRun = 32, kMaxRows = 512, kMaxColumns = 128;
/// Rows that are converted at once before they are transposed.
constexpr int64_t kBandRows = 32;
constexpr int64_t kCacheLine = 64, kPage = 4096;

struct TileShape {
  int64_t rows, columns;
};

/// `element_bytes` is the size of what is transposed. Columns that lie whole pages apart in the target compete for the
/// same lines of the cache, so then fewer and longer ones are better.
TileShape tile_shape(const Transposition& axes, int64_t element_bytes) {
  const bool competing = axes.columns.back().target % kPage == 0;
  const int64_t source_run = competing ? kSourceRun / 2 : kSourceRun;
  TileShape tile;
  tile.columns = std::clamp(source_run / element_bytes, kMinRun, kMaxColumns);
  tile.columns = std::min(tile.columns, axes.column_count);
  tile.rows = std::clamp(kTargetRun / element_bytes, kMinRun, kMaxRows);
  tile.rows = std::min(tile.rows, kStageBytes / (tile.columns * element_bytes));
  return tile;
}

size_t size(int64_t value) { return static_cast<size_t>(value); }

/// Addresses of the members of a group of axes on one side: out[i] = base + offset(first + i).
template <class Pointer>
void list_addresses(const AxisList& axes, int64_t Axis::* side, Pointer base, int64_t first, std::span<Pointer> out) {
  if (axes.size() == 1) {
    const int64_t stride = axes[0].*side;
    base += first * stride;
    for (size_t i = 0; i < out.size(); ++i) out[i] = base + static_cast<int64_t>(i) * stride;
    return;
  }
  std::array<int64_t, kMaxRank> index;
  for (size_t k = axes.size(); k-- > 0; first /= axes[k].extent) {
    index[k] = first % axes[k].extent;
    base += index[k] * (axes[k].*side);
  }
  for (Pointer& address : out) {
    address = base;
    for (size_t k = axes.size(); k-- > 0;) {
      base += axes[k].*side;
      if (++index[k] < axes[k].extent) break;
      base -= axes[k].*side * axes[k].extent;
      index[k] = 0;
    }
  }
}

/// Length of the first tile along one direction: short enough for the next to begin at a cache line.
int64_t first_length(const void* begin, int64_t element_bytes, int64_t tile_length, int64_t whole_length) {
  if (whole_length <= tile_length) return whole_length;
  return tile_length - static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin) % kCacheLine) / element_bytes;
}

class Transposer {
 public:
  Transposer(const Transposition& axes, const Walk& walk, const ElementOp& op)
      : axes_(axes),
        op_(op),
        source_bytes_(walk.source_bytes),
        target_bytes_(walk.target_bytes),
        staged_bytes_(std::min(source_bytes_, target_bytes_)),
        tile_(tile_shape(axes, staged_bytes_)),
        plain_(op.is_plain_copy()),
        operate_(element_kernel(op)),
        transpose_(transpose_kernel(size(staged_bytes_))),
        scatter_(scatter_kernel()) {}

  void run(const std::byte* source, std::byte* target) {
    const int64_t first_rows = first_length(target, target_bytes_, tile_.rows, axes_.row_count);
    const int64_t first_columns = first_length(source, source_bytes_, tile_.columns, axes_.column_count);
    row_count_ = first_rows;
    list_addresses(axes_.rows, &Axis::source, source, 0, std::span(rows_).first(size(row_count_)));
    for (int64_t r = 0; r < axes_.row_count; r += row_count_, row_count_ = next_count_, std::swap(rows_, next_rows_)) {
      next_count_ = std::min(tile_.rows, axes_.row_count - r - row_count_);
      list_addresses(axes_.rows, &Axis::source, source, r + row_count_, std::span(next_rows_).first(size(next_count_)));
      column_count_ = first_columns;
      for (int64_t c = 0; c < axes_.column_count; c += column_count_) {
        if (c != 0) column_count_ = std::min(tile_.columns, axes_.column_count - c);
        list_addresses(axes_.columns, &Axis::target, target + r * target_bytes_, c,
                       std::span(columns_).first(size(column_count_)));
        move_tile(c * source_bytes_);
      }
    }
  }

 private:
  /// Transposes the narrower of the two types.
  void move_tile(int64_t offset) {
    if (source_bytes_ > target_bytes_) {
      operate_and_transpose(offset);
      scatter();
      return;
    }
    const bool last = offset / source_bytes_ + column_count_ >= axes_.column_count;
    TransposeTile tile{rows_.data(), size(row_count_), size(offset), size(column_count_), stage_.data(), size(tile_.rows * staged_bytes_)};
    tile.next_rows = last ? next_rows_.data() : rows_.data();
    tile.next_count = size(last ? next_count_ : row_count_);
    tile.next_offset = last ? 0 : size(offset + column_count_ * source_bytes_);
    transpose_(tile);
    if (plain_) return scatter();
    for (int64_t c = 0; c < column_count_; ++c)
      operate_(op_, stage_.data() + c * tile_.rows * staged_bytes_, columns_[size(c)], size(row_count_));
  }

  void operate_and_transpose(int64_t offset) {
    std::array<const std::byte*, kBandRows> band;
    for (int64_t r = 0; r < row_count_; r += kBandRows) {
      const int64_t count = std::min(kBandRows, row_count_ - r);
      for (int64_t i = 0; i < count; ++i) {
        std::byte* row = operated_.data() + i * tile_.columns * target_bytes_;
        operate_(op_, rows_[size(r + i)] + offset, row, size(column_count_));
        band[size(i)] = row;
      }
      transpose(band.data(), count, 0, stage_.data() + r * target_bytes_);
    }
  }

  void transpose(const std::byte* const* rows, int64_t count, int64_t offset, std::byte* out) {
    transpose_({.rows = rows, .row_count = size(count), .offset = size(offset), .columns = size(column_count_), .out = out,
                .out_stride = size(tile_.rows * staged_bytes_)});
  }

  void scatter() {
    scatter_(stage_.data(), size(tile_.rows * target_bytes_), size(row_count_ * target_bytes_), columns_.data(),
             size(column_count_));
  }

  const Transposition& axes_;
  const ElementOp& op_;
  const int64_t source_bytes_, target_bytes_, staged_bytes_;
  const TileShape tile_;
  const bool plain_;
  const ElementKernel operate_;
  const TransposeKernel transpose_;
  const ScatterKernel scatter_;

  int64_t row_count_ = 0, column_count_ = 0, next_count_ = 0;
  std::array<const std::byte*, kMaxRows> rows_, next_rows_;
  std::array<std::byte*, kMaxColumns> columns_;
  alignas(kCacheLine) std::array<std::byte, kStageBytes> stage_;
  alignas(kCacheLine) std::array<std::byte, kBandRows * kMaxColumns * sizeof(uint64_t)> operated_;
};

}  // namespace

bool find_transposition(const Walk& walk, Transposition& out) {
  const AxisList& axes = walk.axes;
  std::array<bool, kMaxRank> taken{};
  // Takes the axis whose stride on one side continues the group there, if there is one.
  const auto extend = [&](AxisList& group, int64_t& count, int64_t Axis::* side, int64_t element_bytes) {
    for (size_t k = 0; k < axes.size(); ++k) {
      if (taken[k] || axes[k].*side != count * element_bytes) continue;
      taken[k] = true;
      group.push_back(axes[k]);
      count *= axes[k].extent;
      return true;
    }
    return false;
  };
  const auto extend_rows = [&] { return extend(out.rows, out.row_count, &Axis::target, walk.target_bytes); };
  const auto extend_columns = [&] { return extend(out.columns, out.column_count, &Axis::source, walk.source_bytes); };
  if (!extend_rows() || !extend_columns()) return false;
  // An axis may continue both groups; the smaller one needs it more.
  while (out.row_count < out.column_count ? extend_rows() || extend_columns() : extend_columns() || extend_rows()) {
  }
  std::reverse(out.rows.begin(), out.rows.end());
  std::reverse(out.columns.begin(), out.columns.end());
  for (size_t k = 0; k < axes.size(); ++k)
    if (!taken[k]) out.outer.push_back(axes[k]);
  return true;
}

void copy_transposed(const Transposition& axes, const Walk& walk, const ElementOp& op) {
  Transposer transposer(axes, walk, op);
  for_each_index(axes.outer, walk.source, walk.target,
                 [&](const std::byte* source, std::byte* target) { transposer.run(source, target); });
}

}  // namespace maxport
