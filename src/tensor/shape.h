// Shapes and boxes, in elements. Row-major (C) order everywhere: the last axis varies fastest.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace maxport {

/// Extents of a tensor, outermost axis first; empty for a scalar.
using Shape = std::vector<int64_t>;

/// TensorStore and Zarr stop at this rank; so does every reader here.
inline constexpr int kMaxRank = 32;

/// Number of elements, 1 for a scalar. The shape must have been validated (no overflow).
int64_t element_count(std::span<const int64_t> shape);

/// Strides in elements of a dense row-major tensor of this shape.
std::vector<int64_t> row_major_strides(std::span<const int64_t> shape);

/// "[4096, 32, 128]"
std::string shape_text(std::span<const int64_t> shape);

/// A half-open box: `origin[i] <= x[i] < origin[i] + shape[i]`.
struct Box {
  std::vector<int64_t> origin;
  Shape shape;

  static Box whole(std::span<const int64_t> shape) {
    return {std::vector<int64_t>(shape.size(), 0), Shape(shape.begin(), shape.end())};
  }
  bool empty() const;
  bool operator==(const Box&) const = default;
};

/// The common part of two boxes of one rank; with a zero extent where they do not meet.
Box intersect(const Box& a, const Box& b);

/// True when `inner` lies within a tensor of `shape`.
bool contains(std::span<const int64_t> shape, const Box& inner);

}  // namespace maxport
