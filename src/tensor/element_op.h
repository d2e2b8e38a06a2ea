// What happens to one element on its way from source to target: casts, and at most one float32 operation.
//
//   y = round_target( float32(round_compute_input(x)) op operand )
//
// The operation is one IEEE float32 operation, its result is rounded once; subnormals are kept. Casts follow
// tensor/cast.h. `compute_input` should be a type whose values float32 holds; otherwise the value is rounded to that.
#pragma once

#include "base/bytes.h"
#include "tensor/dtype.h"

namespace maxport {

struct ElementOp {
  enum class Kind : uint8_t { kCopy, kMultiply, kAdd };

  DType source = DType::kFloat32;         ///< type of the input bytes
  DType compute_input = DType::kFloat32;  ///< the input is cast to this first, which may round it
  Kind kind = Kind::kCopy;
  float operand = 0;  ///< unused by kCopy
  DType target = DType::kFloat32;

  static ElementOp copy(DType dtype) { return {dtype, dtype, Kind::kCopy, 0, dtype}; }
  static ElementOp convert(DType from, DType to) { return {from, from, Kind::kCopy, 0, to}; }

  /// True when the bytes go through unchanged.
  bool is_plain_copy() const { return kind == Kind::kCopy && source == compute_input && compute_input == target; }
  bool operator==(const ElementOp&) const = default;
};

/// False when a complex type takes part in anything but a plain copy.
bool can_apply(const ElementOp& op);

/// Applies the operation to in.size() / dtype_bytes(op.source) elements. `out` must hold as many elements of the target
/// type and must not overlap `in`; neither needs any alignment. can_apply(op) must hold. Thread-safe, cannot fail.
void apply(const ElementOp& op, ByteSpan in, MutableByteSpan out);

/// What apply() runs, looked up once for many short runs: applies `op` to `count` contiguous elements.
using ElementKernel = void (*)(const ElementOp& op, const std::byte* in, std::byte* out, size_t count);
ElementKernel element_kernel(const ElementOp& op);

}  // namespace maxport
