// Encoded bytes that can be read in parts: a stored value, or something already in memory.
#pragma once

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "storage/key_value_store.h"

namespace maxport::zarr {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  /// `length` bytes from `offset`, within size(). They lie in `keep` or belong to the source.
  virtual Result<ByteSpan> read(uint64_t offset, uint64_t length, Bytes& keep) = 0;

  Result<ByteSpan> read_all(Bytes& keep) { return read(0, size(), keep); }
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(ByteSpan bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<ByteSpan> read(uint64_t offset, uint64_t length, Bytes&) override { return bytes_.subspan(offset, length); }

 private:
  ByteSpan bytes_;
};

/// The value of a key whose length is known.
class StoredSource final : public ByteSource {
 public:
  StoredSource(KeyValueReader& store, std::string key, uint64_t size) : store_(store), key_(std::move(key)), size_(size) {}
  uint64_t size() const override { return size_; }
  Result<ByteSpan> read(uint64_t offset, uint64_t length, Bytes& keep) override {
    MAXPORT_ASSIGN_OR_RETURN(keep, store_.read_range(key_, offset, length));
    if (keep.size() != length)
      return fail(ErrorKind::kCorruptData, "{} of {} bytes from byte {} could be read", keep.size(), length, offset);
    return ByteSpan(keep);
  }

 private:
  KeyValueReader& store_;
  std::string key_;
  uint64_t size_;
};

/// Part of another source, which must outlive it.
class PartSource final : public ByteSource {
 public:
  PartSource(ByteSource& whole, uint64_t offset, uint64_t length) : whole_(whole), offset_(offset), length_(length) {}
  uint64_t size() const override { return length_; }
  Result<ByteSpan> read(uint64_t offset, uint64_t length, Bytes& keep) override {
    return whole_.read(offset_ + offset, length, keep);
  }

 private:
  ByteSource& whole_;
  uint64_t offset_;
  uint64_t length_;
};

}  // namespace maxport::zarr
