// Tensors whose shape and type are known and whose elements are produced region by region, never kept.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "zarr/array_reader.h"

namespace maxport::orbax {

/// Safe for any number of threads.
class LazyTensor {
 public:
  virtual ~LazyTensor() = default;

  virtual const Shape& shape() const = 0;
  /// The type that the elements have by themselves.
  virtual DType dtype() const = 0;
  /// Produces the elements of `region` in the type `as`, densely and in row-major order; `out` has exactly their size.
  /// Conversion follows tensor/cast.h (rounding to nearest even). A region beyond the shape, a buffer of another size
  /// and a conversion that does not exist are kInvalidArgument.
  virtual Result<> read(const Box& region, DType as, MutableByteSpan out) const = 0;

 protected:
  /// The checks that every read begins with.
  Result<> check_read(const Box& region, DType as, size_t out_bytes) const;
};

/// An array of a checkpoint. Whoever owns the reader's store must outlive the tensor.
std::shared_ptr<const LazyTensor> array_tensor(zarr::ArrayReader reader);

/// Dense row-major elements in memory; `bytes` must have the size that shape and type say.
Result<std::shared_ptr<const LazyTensor>> memory_tensor(DType dtype, Shape shape, Bytes bytes);

}  // namespace maxport::orbax
