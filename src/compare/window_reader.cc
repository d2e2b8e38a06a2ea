#include "compare/window_reader.h"

namespace maxport::compare {
namespace {

class ArrayWindows final : public WindowReader {
 public:
  explicit ArrayWindows(const zarr::ArrayReader& array) : array_(array) {}
  DType dtype() const override { return array_.spec().dtype; }
  const Shape& shape() const override { return array_.spec().shape; }
  Shape chunk_shape() const override { return array_.spec().chunk_shape; }
  Result<> read(const Box& box, MutableByteSpan out, Workspace& workspace) const override {
    return array_.read(box, out, workspace.scratch);
  }

 private:
  const zarr::ArrayReader& array_;
};

class FileWindows final : public WindowReader {
 public:
  FileWindows(const huggingface::ShardSet& shards, size_t shard, const safetensors::TensorInfo& tensor)
      : shards_(shards), shard_(shard), tensor_(tensor), dtype_(tensor.dtype), shape_(tensor.shape) {
    if (dtype_info(dtype_).bits % 8 == 0) return;
    dtype_ = DType::kUint8;
    shape_ = {static_cast<int64_t>(tensor.byte_size())};
  }
  DType dtype() const override { return dtype_; }
  const Shape& shape() const override { return shape_; }

  Result<> read(const Box& box, MutableByteSpan out, Workspace&) const override {
    if (box.empty()) return {};
    // Axes from the right that are whole make one run with the first that is not.
    size_t outer = shape_.size();
    int64_t run = 1;
    while (outer > 0) {
      --outer;
      run *= box.shape[outer];
      if (box.shape[outer] != shape_[outer]) break;
    }
    const auto element = static_cast<uint64_t>(dtype_bytes(dtype_));
    const std::vector<int64_t> strides = row_major_strides(shape_);
    std::vector<int64_t> at = box.origin;
    for (size_t done = 0; done < out.size(); done += static_cast<size_t>(run) * element) {
      uint64_t offset = 0;
      for (size_t axis = 0; axis < at.size(); ++axis) offset += static_cast<uint64_t>(at[axis] * strides[axis]);
      MAXPORT_RETURN_IF_ERROR(shards_.read(shard_, tensor_, offset * element, out.subspan(done, static_cast<size_t>(run) * element)));
      for (size_t axis = outer; axis-- > 0;) {
        if (++at[axis] < box.origin[axis] + box.shape[axis]) break;
        at[axis] = box.origin[axis];
      }
    }
    return {};
  }

 private:
  const huggingface::ShardSet& shards_;
  size_t shard_;
  const safetensors::TensorInfo& tensor_;
  DType dtype_;
  Shape shape_;
};

class LeafWindows final : public WindowReader {
 public:
  explicit LeafWindows(engine::LeafReader reader) : reader_(std::move(reader)) {}
  DType dtype() const override { return reader_.dtype(); }
  const Shape& shape() const override { return reader_.shape(); }
  Result<> read(const Box& box, MutableByteSpan out, Workspace& workspace) const override {
    MAXPORT_RETURN_IF_ERROR(reader_.load(box, workspace.source));
    reader_.fill(box, box.shape, workspace.source, out);
    return {};
  }

 private:
  engine::LeafReader reader_;
};

}  // namespace

std::unique_ptr<WindowReader> read_array(const zarr::ArrayReader& array) { return std::make_unique<ArrayWindows>(array); }

std::unique_ptr<WindowReader> read_file_tensor(const huggingface::ShardSet& shards, size_t shard, const safetensors::TensorInfo& tensor) {
  return std::make_unique<FileWindows>(shards, shard, tensor);
}

std::unique_ptr<WindowReader> read_leaf(engine::LeafReader reader) { return std::make_unique<LeafWindows>(std::move(reader)); }

}  // namespace maxport::compare
