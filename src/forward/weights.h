// Named weights of a model, read as float32 when they are asked for. Nothing is kept, so that a forward pass holds
// about one layer at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "forward/matrix.h"

namespace maxport::forward {

/// An implementation may be asked from one thread at a time.
class Weights {
 public:
  virtual ~Weights() = default;

  virtual bool contains(std::string_view name) const = 0;
  /// kNotFound names what is missing and where.
  virtual Result<Shape> shape(std::string_view name) const = 0;
  /// Fills `out` with the elements of `box`, row-major.
  virtual Result<> read(std::string_view name, const Box& box, std::span<float> out) const = 0;
  /// How many indices of axis 0 are best read together.
  virtual Result<int64_t> row_step(std::string_view name) const = 0;

  Result<Tensor> tensor(std::string_view name) const;
  Result<Tensor> part(std::string_view name, const Box& box) const;
  /// The part at `index` of `axis`, without that axis.
  Result<Tensor> slice(std::string_view name, int64_t axis, int64_t index) const;
  /// One row of a table [rows, width] for each id; an id beyond the table is kInvalidArgument.
  Result<Matrix> rows(std::string_view name, std::span<const int32_t> ids) const;
};

/// kInvalidArgument unless `found` is `expected`; -1 stands for any extent.
Result<> check_shape(std::string_view name, const Shape& found, const Shape& expected);

/// logits = x table^T for a table [outputs, width], a block of rows at a time, each passed through `change` first.
Result<Matrix> multiply_by_rows(const Weights& weights, std::string_view name, const Matrix& x,
                                const std::function<void(std::span<float>)>& change = {});
/// logits = x kernel for a kernel [width, outputs], a block of rows at a time.
Result<Matrix> multiply_by_columns(const Weights& weights, std::string_view name, const Matrix& x);

}  // namespace maxport::forward
