#include "tensor/element_op.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tensor/cast.h"

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

void apply_batch(const ElementOp& op, ByteSpan in, size_t count, MutableByteSpan out) {
  Scratch scratch;
  const MutableByteSpan rounded = MutableByteSpan(scratch).first(count * static_cast<size_t>(dtype_bytes(op.compute_input)));
  cast(op.source, in, op.compute_input, rounded);
  if (op.kind == ElementOp::Kind::kCopy) return cast(op.compute_input, rounded, op.target, out);
  std::array<float, kBatch> values;
  const MutableByteSpan bytes = std::as_writable_bytes(std::span(values).first(count));
  cast(op.compute_input, rounded, DType::kFloat32, bytes);
  operate(op, values.data(), count);
  cast(DType::kFloat32, bytes, op.target, out);
}

}  // namespace

bool can_apply(const ElementOp& op) {
  if (op.is_plain_copy()) return true;
  return can_cast(op.source, DType::kFloat32) && can_cast(op.compute_input, DType::kFloat32) &&
         can_cast(op.target, DType::kFloat32);
}

void apply(const ElementOp& op, ByteSpan in, MutableByteSpan out) {
  MAXPORT_CHECK(can_apply(op));
  const size_t source_bytes = static_cast<size_t>(dtype_bytes(op.source));
  const size_t target_bytes = static_cast<size_t>(dtype_bytes(op.target));
  const size_t count = in.size() / source_bytes;
  MAXPORT_CHECK(out.size() / target_bytes >= count);
  if (op.kind == ElementOp::Kind::kCopy && (op.source == op.compute_input || op.compute_input == op.target))
    return cast(op.source, in, op.target, out);
  for (size_t done = 0; done < count; done += kBatch) {
    const size_t batch = std::min(kBatch, count - done);
    apply_batch(op, in.subspan(done * source_bytes, batch * source_bytes), batch,
                out.subspan(done * target_bytes, batch * target_bytes));
  }
}

}  // namespace maxport
