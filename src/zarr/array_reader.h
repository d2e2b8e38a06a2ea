// Reads a Zarr array of either version out of a key-value store.
//
// formats.md section 2. Only the chunks that a request touches are read, and of shards and of plain bytes only the parts
// needed. Checksums are verified. Everything is safe for any number of threads, each with a Scratch of its own.
#pragma once

#include <optional>
#include <string>

#include "storage/key_value_store.h"
#include "zarr/array_spec.h"
#include "zarr/chunk_stream.h"
#include "zarr/region.h"
#include "zarr/scratch.h"

namespace maxport::zarr {

struct ReadOptions {
  /// A chunk that is not there reads as the fill value; otherwise it is kNotFound, as for stock Orbax (formats.md 2.3).
  bool fill_missing = false;
  /// The most memory that one chunk, sub-chunk or shard index may take; arrays that need more are kResourceLimit.
  uint64_t max_chunk_bytes = uint64_t{16} << 30;
};

class ArrayReader {
 public:
  /// Reads the metadata of the array called `name`; the store must outlive the reader. Without a version, "zarr.json" is
  /// looked for first, then ".zarray"; neither is kNotFound.
  static Result<ArrayReader> open(KeyValueReader& store, std::string name, std::optional<Version> version = {},
                                  const ReadOptions& options = {});

  const std::string& name() const { return name_; }
  const ArraySpec& spec() const { return spec_; }

  /// Reads the elements of `box`, which must lie within the array, densely and in row-major order into `out`, which must
  /// have exactly their size. Messages name the array, the chunk and where it is stored.
  Result<> read(const Box& box, MutableByteSpan out, Scratch& scratch) const;
  Result<> read(const Box& box, MutableByteSpan out) const;

  /// Reads a chunk at full chunk size (chunk_bytes(spec())); what lies beyond the array's edge is whatever was stored.
  Result<> read_chunk(std::span<const int64_t> position, MutableByteSpan out, Scratch& scratch) const;

  /// The same from the first byte to the last, in memory of a few megabytes where can_stream(spec()); otherwise the whole
  /// chunk is decoded first. The reader must outlive the stream.
  Result<std::unique_ptr<ChunkStream>> stream(std::span<const int64_t> position) const;

  /// The store key of a chunk.
  std::string chunk_store_key(std::span<const int64_t> position) const;

 private:
  ArrayReader(KeyValueReader& store, std::string name, ArraySpec spec, const ReadOptions& options);

  /// Reads `region`, relative to the chunk.
  Result<> read_region(std::span<const int64_t> position, const Box& region, const ElementTarget& target,
                       Scratch& scratch) const;
  Result<> read_value(const std::string& key, const Box& region, const ElementTarget& target, Scratch& scratch) const;
  bool has_chunk(std::span<const int64_t> position) const;
  Result<> missing(const Box& region, const ElementTarget& target) const;
  std::string chunk_text(const std::string& key) const;

  KeyValueReader* store_;
  std::string name_;
  ArraySpec spec_;
  ReadOptions options_;
  Bytes fill_;
};

}  // namespace maxport::zarr
