#include "orbax/lazy_tensor.h"

#include <algorithm>

#include "base/checked.h"
#include "tensor/cast.h"
#include "tensor/strided_copy.h"

namespace maxport::orbax {
namespace {

class ArrayTensor final : public LazyTensor {
 public:
  explicit ArrayTensor(zarr::ArrayReader reader) : reader_(std::move(reader)) {}

  const Shape& shape() const override { return reader_.spec().shape; }
  DType dtype() const override { return reader_.spec().dtype; }

  Result<> read(const Box& region, DType as, MutableByteSpan out) const override {
    MAXPORT_RETURN_IF_ERROR(check_read(region, as, out.size()));
    zarr::Scratch scratch;
    if (as == dtype()) return reader_.read(region, out, scratch);
    return read_converted(region, as, out, scratch);
  }

 private:
  /// Halves the region until a piece of it in the stored type is small, so that converting needs no second copy of it.
  Result<> read_converted(const Box& region, DType as, MutableByteSpan out, zarr::Scratch& scratch) const {
    constexpr int64_t kPieceElements = int64_t{4} << 20;
    const int64_t elements = element_count(region.shape);
    size_t axis = 0;
    while (axis < region.shape.size() && region.shape[axis] == 1) ++axis;
    if (elements > kPieceElements && axis < region.shape.size()) {
      Box first = region, second = region;
      first.shape[axis] /= 2;
      second.origin[axis] += first.shape[axis];
      second.shape[axis] -= first.shape[axis];
      const auto split = static_cast<size_t>(element_count(first.shape) * dtype_bytes(as));
      MAXPORT_RETURN_IF_ERROR(read_converted(first, as, out.first(split), scratch));
      return read_converted(second, as, out.subspan(split), scratch);
    }
    Bytes stored(static_cast<size_t>(elements * dtype_bytes(dtype())));
    MAXPORT_RETURN_IF_ERROR(reader_.read(region, stored, scratch));
    cast(dtype(), stored, as, out);
    return {};
  }

  zarr::ArrayReader reader_;
};

class MemoryTensor final : public LazyTensor {
 public:
  MemoryTensor(DType dtype, Shape shape, Bytes bytes)
      : dtype_(dtype), shape_(std::move(shape)), bytes_(std::move(bytes)) {}

  const Shape& shape() const override { return shape_; }
  DType dtype() const override { return dtype_; }

  Result<> read(const Box& region, DType as, MutableByteSpan out) const override {
    MAXPORT_RETURN_IF_ERROR(check_read(region, as, out.size()));
    if (region.empty()) return {};
    StridedWalk walk{region.shape, row_major_strides(shape_), row_major_strides(region.shape)};
    int64_t first = 0;
    for (size_t i = 0; i < shape_.size(); ++i) first += region.origin[i] * walk.source_strides[i];
    strided_copy(walk, ElementOp::convert(dtype_, as), bytes_.data() + first * dtype_bytes(dtype_), out.data());
    return {};
  }

 private:
  DType dtype_;
  Shape shape_;
  Bytes bytes_;
};

}  // namespace

Result<> LazyTensor::check_read(const Box& region, DType as, size_t out_bytes) const {
  if (!contains(shape(), region))
    return fail(ErrorKind::kInvalidArgument, "region of {} at {} is not within shape {}", shape_text(region.shape),
                shape_text(region.origin), shape_text(shape()));
  const int64_t bytes = element_count(region.shape) * dtype_bytes(as);
  if (static_cast<int64_t>(out_bytes) != bytes)
    return fail(ErrorKind::kInvalidArgument, "a region of {} {} elements takes {} bytes, {} were given",
                shape_text(region.shape), dtype_name(as), bytes, out_bytes);
  if (as != dtype() && !can_cast(dtype(), as))
    return fail(ErrorKind::kInvalidArgument, "elements of {} cannot become {}", dtype_name(dtype()), dtype_name(as));
  return {};
}

std::shared_ptr<const LazyTensor> array_tensor(zarr::ArrayReader reader) {
  return std::make_shared<ArrayTensor>(std::move(reader));
}

Result<std::shared_ptr<const LazyTensor>> memory_tensor(DType dtype, Shape shape, Bytes bytes) {
  const auto elements = checked_product(shape);
  const auto size = elements ? checked_multiply(*elements, dtype_bytes(dtype)) : std::nullopt;
  if (!size || *size != static_cast<int64_t>(bytes.size()))
    return fail(ErrorKind::kInvalidArgument, "{} bytes are not a tensor of {} {} elements", bytes.size(),
                shape_text(shape), dtype_name(dtype));
  return std::make_shared<MemoryTensor>(dtype, std::move(shape), std::move(bytes));
}

}  // namespace maxport::orbax
