// Dense float32 data of a forward pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/shape.h"

namespace maxport::forward {

/// Activations: one row a token, row-major.
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<float> data;

  Matrix() = default;
  Matrix(int64_t row_count, int64_t col_count)
      : rows(row_count), cols(col_count), data(static_cast<size_t>(row_count * col_count)) {}

  float* row(int64_t i) { return data.data() + i * cols; }
  const float* row(int64_t i) const { return data.data() + i * cols; }
};

/// A weight, or a part of one, row-major.
struct Tensor {
  Shape shape;
  std::vector<float> data;

  int64_t size() const { return static_cast<int64_t>(data.size()); }
  std::span<const float> values() const { return data; }
};

}  // namespace maxport::forward
