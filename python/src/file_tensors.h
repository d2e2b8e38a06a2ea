// Tensors of safetensors files as lazy tensors: any box, reading little more than its bytes.
#pragma once

#include <functional>
#include <memory>

#include "orbax/lazy_tensor.h"
#include "safetensors/header.h"

namespace maxport::python {

/// Fills a buffer from a byte offset within the tensor's stored bytes. Safe to call from several threads.
using ReadBytes = std::function<Result<>(uint64_t byte_offset, MutableByteSpan out)>;

/// A tensor whose elements lie densely in row-major order behind `read`. `info` must outlive the result. Elements
/// smaller than a byte are packed in the file, the first one in the lowest bits, and become one byte each.
std::shared_ptr<const orbax::LazyTensor> file_tensor(const safetensors::TensorInfo& info, ReadBytes read);

}  // namespace maxport::python
