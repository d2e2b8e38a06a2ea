// A safetensors file opened for reading: header parsed and checked, data read by range on request.
//
// Reads are positioned (never mapped), so a file that shrinks meanwhile is an error, not a signal. All const methods
// are safe to call from several threads.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "safetensors/header.h"
#include "storage/storage.h"

namespace maxport::safetensors {

/// What a file that is not safetensors is instead, told by its first bytes, with what to do about it: "a Git LFS
/// pointer, not the file itself; ...". Nothing when the bytes say nothing.
std::optional<std::string> recognise_other_format(ByteSpan first_bytes);

/// kInvalidArgument unless `count` bytes from `byte_offset` on lie within the tensor; `path` is for the message.
Result<> check_range(const TensorInfo& tensor, uint64_t byte_offset, uint64_t count, std::string_view path);

class File {
 public:
  /// Opens and checks a whole header. Fails with kNotFound, kIo, kCorruptData or kResourceLimit; a file of another
  /// format is called what it is (kUnsupported, or kNotFound for a Git LFS pointer whose content was never fetched).
  static Result<std::unique_ptr<File>> open(Storage& storage, const std::string& path,
                                            MetadataPolicy policy = MetadataPolicy::kStrict);

  const std::string& path() const { return file_->path(); }
  /// In the order of their bytes.
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  /// The tensor of that name, or null.
  const TensorInfo* find(std::string_view name) const { return header_.find(name); }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// Oddities that do no harm, e.g. fields that are not part of the format.
  const std::vector<std::string>& notes() const { return header_.notes; }
  const Header& header() const { return header_; }
  /// Absolute offset of the first data byte.
  uint64_t data_begin() const { return data_begin_; }

  /// Fills `out` with the tensor's stored bytes from `byte_offset` (relative to the tensor) on.
  Result<> read(const TensorInfo& tensor, uint64_t byte_offset, MutableByteSpan out) const;
  const ReadableFile& file() const { return *file_; }

  /// XXH3-128 of length field and JSON: changes when any tensor is renamed, retyped, reshaped or moved.
  const std::string& header_digest() const { return header_digest_; }
  /// What the file looked like when it was opened.
  const FileStamp& stamp() const { return stamp_; }
  /// kIo when the file has been replaced or changed since it was opened.
  Result<> check_unchanged() const;

  /// Give up a part to an owner that keeps headers and open files apart; nothing else may be called afterwards but the
  /// other of the two.
  Header release_header() { return std::move(header_); }
  std::unique_ptr<ReadableFile> release_file() { return std::move(file_); }

 private:
  File(std::unique_ptr<ReadableFile> file, FileStamp stamp) : file_(std::move(file)), stamp_(stamp) {}
  Result<> load_header(MetadataPolicy policy);
  Result<Bytes> read_header_block() const;

  std::unique_ptr<ReadableFile> file_;
  FileStamp stamp_;
  Header header_;
  uint64_t data_begin_ = 0;
  std::string header_digest_;
};

}  // namespace maxport::safetensors
