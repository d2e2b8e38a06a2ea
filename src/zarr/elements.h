// Boxes of elements in memory: where they lie, copying them between layouts, and their byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "tensor/dtype.h"

namespace maxport::zarr {

/// Element x lies at `data + dtype_bytes * sum(x[i] * strides[i])`.
template <class ByteType>
struct Elements {
  ByteType* data = nullptr;
  std::vector<int64_t> strides = {};  ///< in elements
};
using ElementSource = Elements<const std::byte>;
using ElementTarget = Elements<std::byte>;

/// True when elements of this shape lie densely in row-major order under these strides.
bool is_dense(std::span<const int64_t> shape, std::span<const int64_t> strides);

/// Copies a box of `shape` elements. A source whose strides are all zero fills the target with one element.
void copy_elements(DType dtype, std::span<const int64_t> shape, const ElementSource& source,
                   const ElementTarget& target);

/// Reverses the bytes of each number (of both parts of a complex one) in place.
void reverse_bytes(DType dtype, MutableByteSpan elements);

}  // namespace maxport::zarr
