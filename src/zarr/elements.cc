#include "zarr/elements.h"

#include <algorithm>

#include "tensor/strided_copy.h"

namespace maxport::zarr {

bool is_dense(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != stride) return false;
    stride *= shape[i];
  }
  return true;
}

void copy_elements(DType dtype, std::span<const int64_t> shape, const ElementSource& source,
                   const ElementTarget& target) {
  const StridedWalk walk{{shape.begin(), shape.end()}, source.strides, target.strides};
  strided_copy(walk, ElementOp::copy(dtype), source.data, target.data);
}

void reverse_bytes(DType dtype, MutableByteSpan elements) {
  const bool complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  const auto size = static_cast<size_t>(dtype_bytes(dtype) / (complex ? 2 : 1));
  for (size_t at = 0; at + size <= elements.size(); at += size)
    std::ranges::reverse(elements.subspan(at, size));
}

}  // namespace maxport::zarr
