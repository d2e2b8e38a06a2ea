#include "tensor/element_op.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tensor/cast.h"
#include "tensor/convert_kernels.h"

namespace maxport {
namespace {

/// Elements converted at once; their float64 copies stay in the first-level cache.
constexpr size_t kBatch = 512;
using Scratch = std::array<std::byte, kBatch * sizeof(double)>;

void operate(const ElementOp& op, float* values, size_t count) {
  if (op.kind == ElementOp::Kind::kMultiply) {
    for (size_t i = 0; i < count; ++i) values[i] *= op.operand;
  } else {
    for (size_t i = 0; i < count; ++i) values[i] += op.operand;
  }
}

void apply_batch(const ElementOp& op, ByteSpan in, MutableByteSpan out, size_t count) {
  Scratch scratch;
  const auto rounded = MutableByteSpan(scratch).first(count * static_cast<size_t>(dtype_bytes(op.compute_input)));
  cast(op.source, in, op.compute_input, rounded);
  if (op.kind == ElementOp::Kind::kCopy) return cast(op.compute_input, rounded, op.target, out);
  std::array<float, kBatch> values;
  const MutableByteSpan bytes = std::as_writable_bytes(std::span(values).first(count));
  cast(op.compute_input, rounded, DType::kFloat32, bytes);
  operate(op, values.data(), count);
  cast(DType::kFloat32, bytes, op.target, out);
}

void copy_run(const ElementOp& op, const std::byte* in, std::byte* out, size_t count) {
  if (count != 0) std::memcpy(out, in, count * static_cast<size_t>(dtype_bytes(op.source)));
}

/// Through cast(), for the pairs of types that no vector kernel serves.
void generic_run(const ElementOp& op, const std::byte* in, std::byte* out, size_t count) {
  const auto source_bytes = static_cast<size_t>(dtype_bytes(op.source));
  const auto target_bytes = static_cast<size_t>(dtype_bytes(op.target));
  if (op.kind == ElementOp::Kind::kCopy && (op.source == op.compute_input || op.compute_input == op.target))
    return cast(op.source, {in, count * source_bytes}, op.target, {out, count * target_bytes});
  for (size_t done = 0; done < count; done += kBatch) {
    const size_t batch = std::min(kBatch, count - done);
    apply_batch(op, {in + done * source_bytes, batch * source_bytes}, {out + done * target_bytes, batch * target_bytes},
                batch);
  }
}

}  // namespace

bool can_apply(const ElementOp& op) {
  if (op.is_plain_copy()) return true;
  return can_cast(op.source, DType::kFloat32) && can_cast(op.compute_input, DType::kFloat32) &&
         can_cast(op.target, DType::kFloat32);
}

ElementKernel element_kernel(const ElementOp& op) {
  MAXPORT_CHECK(can_apply(op));
  if (op.is_plain_copy()) return copy_run;
  if (const ElementKernel kernel = vector_kernel(op)) return kernel;
  return generic_run;
}

void apply(const ElementOp& op, ByteSpan in, MutableByteSpan out) {
  const size_t count = in.size() / static_cast<size_t>(dtype_bytes(op.source));
  MAXPORT_CHECK(out.size() / static_cast<size_t>(dtype_bytes(op.target)) >= count);
  element_kernel(op)(op, in.data(), out.data(), count);
}

}  // namespace maxport
