// Writing safetensors files: the layout is known before the first byte, then tensors arrive in any order and in pieces.
//
// Without a given order the layout is that of the reference library (wider types first, then by name), so that the same
// tensors give the same bytes as its save_file.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "safetensors/header.h"
#include "storage/storage.h"

namespace maxport::safetensors {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
};

enum class Order {
  kAsGiven,
  kReference,  ///< types in the reference library's order, widest first, then names as bytes
};

/// What the library writes for PyTorch models, and what some loaders demand.
inline const std::map<std::string, std::string> kTorchMetadata = {{"format", "pt"}};

struct Layout {
  std::string header;               ///< length field and JSON, padded with spaces to a multiple of 8
  std::vector<TensorInfo> tensors;  ///< in the order of the specs, with absolute byte ranges
  uint64_t file_size = 0;
};

/// Upper bound of what one tensor adds to the JSON, in bytes.
uint64_t header_bytes_of(const TensorSpec& tensor);

/// Places tensors end to end. Fails with kInvalidArgument (a name twice, "__metadata__", a name that is not UTF-8, a
/// size that overflows), kUnsupported (no such type in the format) or kResourceLimit (header above the format's limit).
Result<Layout> layout_file(std::span<const TensorSpec> tensors, Order order = Order::kReference,
                           const std::map<std::string, std::string>& metadata = kTorchMetadata);

/// One file being written. write() may be called from several threads for disjoint ranges; the caller sees to it that
/// every byte is written. The file is whole only after finish().
class FileWriter {
 public:
  static Result<std::unique_ptr<FileWriter>> create(Storage& storage, const std::string& path, Layout layout);
  /// Opens a file that an earlier run began with the same layout, keeping its content.
  static Result<std::unique_ptr<FileWriter>> resume(Storage& storage, const std::string& path, Layout layout);

  const Layout& layout() const { return layout_; }
  const std::string& path() const { return file_->path(); }

  /// Stores bytes of tensor `index` (into the specs) from `byte_offset` within it on.
  Result<> write(size_t index, uint64_t byte_offset, ByteSpan bytes);
  /// Makes all that was written durable and keeps the file open.
  Result<> sync() { return file_->sync(); }
  /// Makes the file durable and closes it.
  Result<> finish();

 private:
  FileWriter(std::unique_ptr<WritableFile> file, Layout layout) : file_(std::move(file)), layout_(std::move(layout)) {}
  static Result<std::unique_ptr<FileWriter>> start(Storage& storage, const std::string& path, Layout layout,
                                                   bool truncate);

  std::unique_ptr<WritableFile> file_;
  Layout layout_;
};

}  // namespace maxport::safetensors
