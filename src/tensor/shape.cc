#include "tensor/shape.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace maxport {

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

bool Box::empty() const {
  return std::ranges::any_of(shape, [](int64_t extent) { return extent <= 0; });
}

Box intersect(const Box& a, const Box& b) {
  Box out = a;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    const int64_t begin = std::max(a.origin[i], b.origin[i]);
    const int64_t end = std::min(a.origin[i] + a.shape[i], b.origin[i] + b.shape[i]);
    out.origin[i] = begin;
    out.shape[i] = std::max<int64_t>(0, end - begin);
  }
  return out;
}

bool contains(std::span<const int64_t> shape, const Box& inner) {
  if (inner.shape.size() != shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (inner.origin[i] < 0 || inner.shape[i] < 0 || inner.origin[i] > shape[i] - inner.shape[i]) return false;
  return true;
}

}  // namespace maxport
