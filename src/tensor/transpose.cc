#include "tensor/transpose.h"

#include <algorithm>
#include <array>

#include "tensor/transpose_kernels.h"

namespace maxport {
namespace {

/// A tile is read in pieces of whole cache lines of the source and written in whole lines of the target, through a
/// buffer that stays in the first-level cache. So each line of either side is touched once, and row strides that are
/// powers of two, usual for weights, do no harm.
constexpr int64_t kTileRows = 64;
constexpr int64_t kTileColumnBytes = 64;
constexpr int64_t kMaxElementBytes = 16;

/// Byte offsets of the members of a group of axes on one side, in order.
class Offsets {
 public:
  Offsets(const AxisList& axes, int64_t Axis::* side) : axes_(axes), side_(side) {}

  /// out[i] = base + offset(first + i)
  template <class Pointer>
  void fill(Pointer base, int64_t first, int64_t count, Pointer* out) const {
    if (axes_.size() == 1) {
      const int64_t stride = axes_[0].*side_;
      for (int64_t i = 0; i < count; ++i) out[i] = base + (first + i) * stride;
      return;
    }
    std::array<int64_t, kMaxRank> index;
    for (size_t k = axes_.size(); k-- > 0;) {
      index[k] = first % axes_[k].extent;
      first /= axes_[k].extent;
      base += index[k] * (axes_[k].*side_);
    }
    for (int64_t i = 0; i < count; ++i) {
      out[i] = base;
      for (size_t k = axes_.size(); k-- > 0;) {
        base += axes_[k].*side_;
        if (++index[k] < axes_[k].extent) break;
        base -= axes_[k].*side_ * axes_[k].extent;
        index[k] = 0;
      }
    }
  }

 private:
  const AxisList& axes_;
  int64_t Axis::* side_;
};

class Transposer {
 public:
  Transposer(const Transposition& axes, const Walk& walk, const ElementOp& op)
      : axes_(axes),
        op_(op),
        source_bytes_(walk.source_bytes),
        target_bytes_(walk.target_bytes),
        tile_columns_(kTileColumnBytes / std::max(source_bytes_, target_bytes_)),
        plain_(op.is_plain_copy()),
        // The narrower type is the one to transpose.
        operate_first_(target_bytes_ <= source_bytes_),
        operate_(element_kernel(op)),
        transpose_(transpose_kernel(static_cast<size_t>(operate_first_ ? target_bytes_ : source_bytes_))),
        scatter_(scatter_kernel()) {}

  void run(const std::byte* source, std::byte* target) {
    const Offsets row_offsets(axes_.rows, &Axis::source), column_offsets(axes_.columns, &Axis::target);
    for (int64_t r = 0; r < axes_.row_count; r += kTileRows) {
      row_count_ = std::min(kTileRows, axes_.row_count - r);
      row_offsets.fill(source, r, row_count_, rows_.data());
      for (int64_t c = 0; c < axes_.column_count; c += tile_columns_) {
        column_count_ = std::min(tile_columns_, axes_.column_count - c);
        column_offsets.fill(target + r * target_bytes_, c, column_count_, columns_.data());
        move_tile(c * source_bytes_);
      }
    }
  }

 private:
  void move_tile(int64_t offset) {
    if (plain_) {
      transpose(rows_.data(), offset, source_bytes_);
      scatter();
    } else if (operate_first_) {
      std::array<const std::byte*, kTileRows> rows;
      for (int64_t r = 0; r < row_count_; ++r) {
        std::byte* row = operated_.data() + r * kTileColumnBytes;
        operate_(op_, rows_[index(r)] + offset, row, index(column_count_));
        rows[index(r)] = row;
      }
      transpose(rows.data(), 0, target_bytes_);
      scatter();
    } else {
      transpose(rows_.data(), offset, source_bytes_);
      for (int64_t c = 0; c < column_count_; ++c)
        operate_(op_, stage_.data() + c * kTileRows * source_bytes_, columns_[index(c)], index(row_count_));
    }
  }

  void transpose(const std::byte* const* rows, int64_t offset, int64_t element_bytes) {
    transpose_({rows, index(row_count_), index(offset), index(column_count_), stage_.data(),
                index(kTileRows * element_bytes)});
  }

  void scatter() {
    scatter_(stage_.data(), index(kTileRows * target_bytes_), index(row_count_ * target_bytes_), columns_.data(),
             index(column_count_));
  }

  static size_t index(int64_t i) { return static_cast<size_t>(i); }

  const Transposition& axes_;
  const ElementOp& op_;
  const int64_t source_bytes_, target_bytes_, tile_columns_;
  const bool plain_, operate_first_;
  const ElementKernel operate_;
  const TransposeKernel transpose_;
  const ScatterKernel scatter_;

  int64_t row_count_ = 0, column_count_ = 0;
  std::array<const std::byte*, kTileRows> rows_;
  std::array<std::byte*, kTileColumnBytes> columns_;
  alignas(64) std::array<std::byte, kTileRows * kTileColumnBytes> stage_, operated_;
};

}  // namespace

bool find_transposition(const Walk& walk, Transposition& out) {
  const AxisList& axes = walk.axes;
  if (axes.size() < 2 || axes.back().target != walk.target_bytes || axes.back().source == walk.source_bytes)
    return false;
  const auto* column = std::ranges::find(axes, walk.source_bytes, &Axis::source);
  if (column == axes.end()) return false;

  // Rows: the chain of axes that is dense in the target, from the innermost outwards.
  const Axis* rows_begin = axes.end();
  while (rows_begin != axes.begin() && rows_begin - 1 != column &&
         rows_begin[-1].target == out.row_count * walk.target_bytes)
    out.row_count *= (--rows_begin)->extent;
  for (const Axis* axis = rows_begin; axis != axes.end(); ++axis) out.rows.push_back(*axis);

  // Columns: likewise in the source, among what is left; found innermost first.
  std::array<bool, kMaxRank> taken{};
  for (const Axis* next = column; next != rows_begin;) {
    taken[static_cast<size_t>(next - axes.begin())] = true;
    out.columns.push_back(*next);
    out.column_count *= next->extent;
    next = std::find_if(axes.begin(), rows_begin, [&](const Axis& axis) {
      return axis.source == out.column_count * walk.source_bytes && !taken[static_cast<size_t>(&axis - axes.begin())];
    });
  }
  std::reverse(out.columns.begin(), out.columns.end());
  for (const Axis* axis = axes.begin(); axis != rows_begin; ++axis)
    if (!taken[static_cast<size_t>(axis - axes.begin())]) out.outer.push_back(*axis);
  return true;
}

void copy_transposed(const Transposition& axes, const Walk& walk, const ElementOp& op) {
  Transposer transposer(axes, walk, op);
  for_each_index(axes.outer, walk.source, walk.target,
                 [&](const std::byte* source, std::byte* target) { transposer.run(source, target); });
}

}  // namespace maxport
