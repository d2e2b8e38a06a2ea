// Shards ("sharding_indexed", formats.md 2.2): encoded sub-chunks and an index of them.
//
//   index: for each sub-chunk in C order  offset le64, length le64 (from the start of the shard), then a CRC-32C;
//          both fields 2^64-1 where a sub-chunk is missing. At the end or at the start of the shard.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "zarr/array_spec.h"
#include "zarr/scratch.h"
#include "zarr/elements.h"

namespace maxport::zarr {

/// TensorStore's limit on the sub-chunks of one shard.
inline constexpr int64_t kMaxShardEntries = int64_t{1} << 30;

struct ShardEntry {
  uint64_t offset = std::numeric_limits<uint64_t>::max();
  uint64_t length = std::numeric_limits<uint64_t>::max();

  bool missing() const { return offset == ~uint64_t{0} && length == ~uint64_t{0}; }
};

/// Number of sub-chunks along each axis of a chunk of `shape`, which the sub-chunk shape divides.
Shape shard_grid(const Sharding& sharding, std::span<const int64_t> shape);

/// Size of the encoded index in bytes.
uint64_t shard_index_bytes(const Sharding& sharding, int64_t entries);

/// Decodes the index. Entries that reach beyond `shard_bytes` are kCorruptData.
Result<std::vector<ShardEntry>> decode_shard_index(const Sharding& sharding, ByteSpan encoded, int64_t entries,
                                                   uint64_t shard_bytes);

/// Encodes a shard of `shape` whose elements lie at `source`; every sub-chunk is stored. The result lies in `scratch`.
Result<ByteSpan> encode_shard(const Sharding& sharding, DType dtype, std::span<const int64_t> shape,
                              const ElementSource& source, Scratch& scratch);

}  // namespace maxport::zarr
