// The part of a link that lies within a box of a leaf.
//
// A link's indices are digits of the leaf's axes, so cutting the leaf along its axes cuts a link into a few smaller
// walks. Everything is in elements; nothing here reads data.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/plan.h"
#include "tensor/strided_copy.h"

namespace maxport::engine {

/// A smaller walk of the same link. Strides are those of the tensor and of a dense array of the box's shape.
struct Region {
  StridedWalk walk;        ///< source = tensor side, target = box side
  int64_t tensor_offset;   ///< of the first element, within the tensor
  int64_t box_offset;      ///< of the first element, within the dense box

  int64_t element_count() const;
  /// One past the last tensor element that the walk touches.
  int64_t tensor_end() const;
};

/// For each axis of the leaf the smallest tensor stride of the indices on it, in elements; kOtherTensor where the axis
/// chooses the tensor (layers, experts), and everywhere for a constant.
inline constexpr int64_t kOtherTensor = INT64_MAX;
std::vector<int64_t> tensor_strides(const plan::Plan& plan, const plan::Leaf& leaf);

/// The kernel operation of a parameter's arithmetic.
ElementOp::Kind op_kind(models::Arithmetic::Kind kind);

/// A link seen from its leaf: which axis each index belongs to.
class LinkGeometry {
 public:
  LinkGeometry(const plan::Plan& plan, const plan::Leaf& leaf, const plan::Link& link);

  /// The smallest box of the leaf that holds the link.
  const Box& bounds() const { return bounds_; }

  /// Calls `visit` with walks that together are the link within `box`; none when they do not meet. The box must lie in
  /// the leaf's shape; `box_extents` is the shape of the dense array that box_offset counts in (at least box.shape; a
  /// full chunk for an edge chunk).
  void within(const Box& box, std::span<const int64_t> box_extents, const std::function<void(Region&&)>& visit) const;

 private:
  struct Digit {
    int64_t extent;         // how many values
    int64_t step;           // positions along its axis
    int64_t tensor_stride;  // elements
  };
  struct Range {
    int64_t begin, end;
  };
  using Ranges = std::vector<Range>;

  static void cut(const std::vector<Digit>& digits, size_t digit, int64_t begin, int64_t end, Ranges& current,
                  std::vector<Ranges>& out);

  std::vector<std::vector<Digit>> axes_;  // by leaf axis, largest step first
  Box bounds_;                            // origin is the link's first element
  int64_t tensor_offset_;
};

}  // namespace maxport::engine
