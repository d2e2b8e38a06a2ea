// One side of a comparison: a tensor of known type and shape, boxes of which are read when they are asked for.
//
// Three kinds: an array of a checkpoint, a tensor of safetensors files, and a MaxText leaf derived from Hugging Face
// tensors exactly as a conversion derives it. Immutable; safe from several threads, each with a Workspace of its own.
#pragma once

#include <memory>

#include "engine/leaf_reader.h"
#include "huggingface/shard_set.h"
#include "zarr/array_reader.h"

namespace maxport::compare {

/// What a thread keeps from window to window.
struct Workspace {
  zarr::Scratch scratch;
  engine::SourceWindow source;
  Bytes a, b;
};

class WindowReader {
 public:
  virtual ~WindowReader() = default;
  virtual DType dtype() const = 0;
  virtual const Shape& shape() const = 0;
  /// The boxes in which the tensor is stored; all ones where any box costs the same.
  virtual Shape chunk_shape() const { return Shape(shape().size(), 1); }
  /// Fills `out` with the elements of `box`, dense and row-major.
  virtual Result<> read(const Box& box, MutableByteSpan out, Workspace& workspace) const = 0;
};

/// `array` must outlive the reader.
std::unique_ptr<WindowReader> read_array(const zarr::ArrayReader& array);
/// Types of less than 8 bits are packed in these files: such a tensor is seen as `uint8` of one axis.
std::unique_ptr<WindowReader> read_file_tensor(const huggingface::ShardSet& shards, size_t shard, const safetensors::TensorInfo& tensor);
std::unique_ptr<WindowReader> read_leaf(engine::LeafReader reader);

}  // namespace maxport::compare
