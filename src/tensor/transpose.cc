#include "tensor/transpose.h"

#include <algorithm>
#include <array>

#include "tensor/transpose_kernels.h"

namespace maxport {
namespace {

/// A tile is read in pieces of whole cache lines of the source and written in long runs of whole lines of the target,
/// through a buffer that stays in the first-level cache. So each line of either side is touched once, and row strides
/// that are powers of two, usual for weights, do little harm.
constexpr int64_t kSourceRun = 128, kTargetRun = 512, kMaxRows = 256;
constexpr int64_t kTileBytes = kSourceRun * kMaxRows;

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
        tile_rows_(std::min(kMaxRows, kTargetRun / std::max(source_bytes_, target_bytes_))),
        tile_columns_(kSourceRun / std::max(source_bytes_, target_bytes_)),
        plain_(op.is_plain_copy()),
        // The narrower type is the one to transpose.
        operate_first_(target_bytes_ <= source_bytes_),
        operate_(element_kernel(op)),
        transpose_(transpose_kernel(static_cast<size_t>(operate_first_ ? target_bytes_ : source_bytes_))),
        scatter_(scatter_kernel()) {}

  void run(const std::byte* source, std::byte* target) {
    const Offsets row_offsets(axes_.rows, &Axis::source), column_offsets(axes_.columns, &Axis::target);
    for (int64_t r = 0; r < axes_.row_count; r += tile_rows_) {
      row_count_ = std::min(tile_rows_, axes_.row_count - r);
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
      std::array<const std::byte*, kMaxRows> rows;
      for (int64_t r = 0; r < row_count_; ++r) {
        std::byte* row = operated_.data() + r * kSourceRun;
        operate_(op_, rows_[index(r)] + offset, row, index(column_count_));
        rows[index(r)] = row;
      }
      transpose(rows.data(), 0, target_bytes_);
      scatter();
    } else {
      transpose(rows_.data(), offset, source_bytes_);
      for (int64_t c = 0; c < column_count_; ++c)
        operate_(op_, stage_.data() + c * tile_rows_ * source_bytes_, columns_[index(c)], index(row_count_));
    }
  }

  void transpose(const std::byte* const* rows, int64_t offset, int64_t element_bytes) {
    transpose_({rows, index(row_count_), index(offset), index(column_count_), stage_.data(),
                index(tile_rows_ * element_bytes)});
  }

  void scatter() {
    scatter_(stage_.data(), index(tile_rows_ * target_bytes_), index(row_count_ * target_bytes_), columns_.data(),
             index(column_count_));
  }

  static size_t index(int64_t i) { return static_cast<size_t>(i); }

  const Transposition& axes_;
  const ElementOp& op_;
  const int64_t source_bytes_, target_bytes_, tile_rows_, tile_columns_;
  const bool plain_, operate_first_;
  const ElementKernel operate_;
  const TransposeKernel transpose_;
  const ScatterKernel scatter_;

  int64_t row_count_ = 0, column_count_ = 0;
  std::array<const std::byte*, kMaxRows> rows_;
  std::array<std::byte*, kSourceRun> columns_;
  alignas(64) std::array<std::byte, kTileBytes> stage_, operated_;
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
