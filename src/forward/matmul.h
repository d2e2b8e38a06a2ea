// Matrix products in float32. The only file that sees Eigen, which is slow to compile.
#pragma once

#include "forward/matrix.h"

namespace maxport::forward {

/// Row-major views: element (i, j) lies at data[i * stride + j].
struct ConstView {
  const float* data;
  int64_t rows, cols, stride;
};
struct View {
  float* data;
  int64_t rows, cols, stride;
};

inline ConstView view(const Matrix& m) { return {m.data.data(), m.rows, m.cols, m.cols}; }
inline View view(Matrix& m) { return {m.data.data(), m.rows, m.cols, m.cols}; }

/// out = a b, or out += a b. The extents must fit.
void multiply(View out, ConstView a, ConstView b, bool add = false);
/// out = a b^T, or out += a b^T: b is stored [outputs, inputs], as torch stores linear layers.
void multiply_transposed(View out, ConstView a, ConstView b, bool add = false);

/// Threads that one large product may use, at least 1. Set once, before any product.
void set_multiply_threads(int threads);

}  // namespace maxport::forward
