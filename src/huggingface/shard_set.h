// The weight files of one model: all headers in memory, a bounded number of files open.
//
// A model may have hundreds of shards, more than a process may hold open. Headers are read once; data files are opened
// again on demand, least recently used closed first, and must look then as they did when their header was read.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "safetensors/file.h"
#include "storage/storage.h"

namespace maxport::huggingface {

struct Shard {
  std::string name;  ///< relative to the model's folder
  std::string path;
  FileStamp stamp;            ///< when the header was read
  std::string header_digest;  ///< see safetensors::File::header_digest
  safetensors::Header header;
};

/// Adding is for one thread; everything else is safe from several.
class ShardSet {
 public:
  /// `storage` must outlive the set.
  ShardSet(Storage& storage, size_t max_open_files) : storage_(storage), max_open_(max_open_files) {}

  /// Opens a file and reads its header. Pointers into earlier shards' headers stay valid.
  Result<> add(std::string name, const std::string& path, safetensors::MetadataPolicy policy);

  const std::vector<std::unique_ptr<const Shard>>& shards() const { return shards_; }

  /// Fills `out` from byte `byte_offset` of a tensor of shard `index`.
  Result<> read(size_t index, const safetensors::TensorInfo& tensor, uint64_t byte_offset, MutableByteSpan out) const;
  /// The open data file of a shard, which stays open as long as the pointer is held.
  Result<std::shared_ptr<const ReadableFile>> open(size_t index) const;
  /// kIo when any file has been replaced or changed since its header was read.
  Result<> check_unchanged() const;

 private:
  struct Open {
    size_t index;
    std::shared_ptr<const ReadableFile> file;
  };

  void remember(size_t index, std::shared_ptr<const ReadableFile> file) const;

  Storage& storage_;
  size_t max_open_;
  std::vector<std::unique_ptr<const Shard>> shards_;
  mutable std::mutex mutex_;
  mutable std::list<Open> open_;  // most recently used first
};

}  // namespace maxport::huggingface
