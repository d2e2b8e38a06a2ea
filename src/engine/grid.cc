#include "engine/grid.h"

#include <algorithm>

#include "engine/region.h"

namespace maxport::engine {
namespace {

/// Bands of more chunks than this would need too much memory; several shards then share a chunk.
constexpr int64_t kMaximumBandChunks = 16;

/// Splits `extent` into equal parts of at most `most`, preferring parts that divide it.
int64_t even_part(int64_t extent, int64_t most) {
  most = std::clamp<int64_t>(most, 1, extent);
  for (int64_t part = most; part * 10 >= most * 6; --part)
    if (extent % part == 0) return part;
  const int64_t parts = (extent + most - 1) / most;
  return (extent + parts - 1) / parts;
}

/// The largest divisor of `extent` that is at most `most`.
int64_t largest_divisor(int64_t extent, int64_t most) {
  for (int64_t part = std::min(most, extent); part > 1; --part)
    if (extent % part == 0) return part;
  return 1;
}

class GridChooser {
 public:
  GridChooser(const plan::Plan& plan, const plan::Leaf& leaf, const GridRequest& request)
      : shape_(leaf.shape),
        strides_(leaf.link_count ? tensor_strides(plan, leaf) : row_major_strides(leaf.shape)),
        most_(request.chunk_bytes),
        element_bytes_(request.element_bytes),
        shard_axis_(request.devices > 1 ? request.shard_axis : -1),
        devices_(request.devices) {}

  ChunkGrid choose() {
    grid_.chunk_shape = shape_;
    for (size_t axis = 0; axis < shape_.size(); ++axis)
      if (strides_[axis] == kOtherTensor) grid_.chunk_shape[axis] = 1;
    if (bytes() <= most_) {
      join_tensors();
    } else {
      cut_shards();
      cut_rows();
    }
    for (int64_t& extent : grid_.chunk_shape) extent = std::max<int64_t>(extent, 1);
    return grid_;
  }

 private:
  int64_t bytes() const { return element_count(grid_.chunk_shape) * element_bytes_; }

  /// Several layers, experts, ... share a chunk while it stays small.
  void join_tensors() {
    for (size_t axis = shape_.size(); axis-- > 0;) {
      if (strides_[axis] != kOtherTensor) continue;
      const int64_t most = most_ / std::max<int64_t>(bytes(), 1);
      if (most <= 1) return;
      int64_t part = even_part(shape_[axis], most);
      if (static_cast<int>(axis) == shard_axis_) part = respect_shards(axis, part);
      grid_.chunk_shape[axis] = part;
      if (part < shape_[axis]) return;
    }
  }

  int64_t respect_shards(size_t axis, int64_t part) const {
    const int64_t shard = shape_[axis] / devices_;
    if (part >= shard) return shard * largest_divisor(devices_, part / shard);
    return largest_divisor(shard, part);
  }

  /// One shard a chunk, or several where shards are small or many.
  void cut_shards() {
    if (shard_axis_ < 0) return;
    const auto axis = static_cast<size_t>(shard_axis_);
    if (strides_[axis] == kOtherTensor) return;  // already one tensor a chunk, so part of one shard
    const int64_t shard = shape_[axis] / devices_;
    const int64_t shard_bytes = bytes() / devices_;
    for (int64_t together = 1; together <= devices_; ++together) {
      if (devices_ % together != 0) continue;
      grid_.chunk_shape[axis] = shard * together;
      if (shard_bytes * together >= most_ / 2 && devices_ / together <= kMaximumBandChunks) break;
    }
    if (grid_.chunk_shape[axis] < shape_[axis] && static_cast<int>(axis) != outermost()) grid_.band_axis = shard_axis_;
  }

  /// The axis whose steps are the largest in the source, among those that can still be cut.
  int outermost() const {
    int best = -1;
    for (size_t axis = 0; axis < shape_.size(); ++axis) {
      if (grid_.chunk_shape[axis] <= 1 || strides_[axis] == kOtherTensor) continue;
      if (static_cast<int>(axis) == grid_.band_axis) continue;
      if (best < 0 || strides_[axis] > strides_[static_cast<size_t>(best)]) best = static_cast<int>(axis);
    }
    return best;
  }

  void cut_rows() {
    while (bytes() > most_) {
      int axis = outermost();
      if (axis < 0) axis = grid_.band_axis;
      if (axis < 0) return;
      const auto a = static_cast<size_t>(axis);
      const int64_t extent = grid_.chunk_shape[a];
      const int64_t most = std::max<int64_t>(1, extent * most_ / bytes());
      int64_t part = even_part(extent, most);
      if (axis == shard_axis_) {
        const int64_t divisor = largest_divisor(extent, most);
        if (divisor * 8 >= most) part = divisor;
      }
      grid_.chunk_shape[a] = std::min(part, extent - 1);
    }
  }

  const Shape& shape_;
  std::vector<int64_t> strides_;
  int64_t most_;  // bytes of a chunk
  int64_t element_bytes_;
  int shard_axis_;
  int devices_;
  ChunkGrid grid_;
};

}  // namespace

Shape ChunkGrid::counts(std::span<const int64_t> shape) const {
  Shape counts;
  for (size_t i = 0; i < shape.size(); ++i) counts.push_back((shape[i] + chunk_shape[i] - 1) / chunk_shape[i]);
  return counts;
}

Box ChunkGrid::chunk_box(std::span<const int64_t> shape, std::span<const int64_t> position) const {
  Box box;
  for (size_t i = 0; i < shape.size(); ++i) {
    box.origin.push_back(position[i] * chunk_shape[i]);
    box.shape.push_back(std::min(chunk_shape[i], shape[i] - box.origin[i]));
  }
  return box;
}

Box ChunkGrid::band_box(std::span<const int64_t> shape, std::span<const int64_t> position) const {
  Box box = chunk_box(shape, position);
  if (band_axis >= 0) {
    const auto axis = static_cast<size_t>(band_axis);
    box.origin[axis] = 0;
    box.shape[axis] = shape[axis];
  }
  return box;
}

int64_t chunk_bytes_for(const plan::Plan& plan) {
  constexpr int64_t kElementBytes = 2;
  int64_t bytes = 0;
  for (const plan::Leaf& leaf : plan.leaves) bytes += element_count(leaf.shape) * kElementBytes;
  return bytes <= kMaximumSmallChunks * kSmallChunkBytes ? kSmallChunkBytes : kLargeChunkBytes;
}

ChunkGrid choose_grid(const plan::Plan& plan, const plan::Leaf& leaf, const GridRequest& request) {
  return GridChooser(plan, leaf, request).choose();
}

}  // namespace maxport::engine
