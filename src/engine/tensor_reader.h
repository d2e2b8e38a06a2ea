// The source side of a conversion towards MaxText: the plan's tensors, read by range.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "tensor/dtype.h"

namespace maxport::engine {

class TensorReader {
 public:
  virtual ~TensorReader() = default;
  /// `tensor` is an index into Plan::tensors.
  virtual DType dtype(uint32_t tensor) const = 0;
  /// Fills `out` with the tensor's stored bytes from `byte_offset` on. Safe to call from several threads.
  virtual Result<> read(uint32_t tensor, uint64_t byte_offset, MutableByteSpan out) const = 0;
};

}  // namespace maxport::engine
