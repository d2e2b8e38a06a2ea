#include "zarr/sharding.h"

#include <algorithm>

#include "base/checked.h"
#include "zarr/byte_codecs.h"
#include "zarr/codec_chain.h"
#include "zarr/grid.h"

namespace maxport::zarr {
namespace {

constexpr uint64_t kEntryBytes = 16;

bool index_is_big_endian(const Sharding& sharding) { return sharding.index_codecs.front().big_endian; }

uint64_t load_field(const std::byte* at, bool big_endian) {
  const auto value = load_le<uint64_t>(at);
  return big_endian ? std::byteswap(value) : value;
}

Bytes encode_index(const Sharding& sharding, std::span<const ShardEntry> entries, uint64_t base) {
  Bytes out(entries.size() * kEntryBytes);
  std::byte* at = out.data();
  for (const ShardEntry& entry : entries) {
    for (uint64_t field : {entry.offset + base, entry.length}) {
      store_le(index_is_big_endian(sharding) ? std::byteswap(field) : field, at);
      at += sizeof field;
    }
  }
  if (sharding.index_codecs.size() > 1) {
    const uint32_t crc = crc32c(out);
    out.resize(out.size() + sizeof crc);
    store_le(crc, out.data() + out.size() - sizeof crc);
  }
  return out;
}

}  // namespace

Shape shard_grid(const Sharding& sharding, std::span<const int64_t> shape) {
  Shape grid(shape.size());
  for (size_t i = 0; i < grid.size(); ++i) grid[i] = shape[i] / sharding.chunk_shape[i];
  return grid;
}

uint64_t shard_index_bytes(const Sharding& sharding, int64_t entries) {
  return static_cast<uint64_t>(entries) * kEntryBytes + (sharding.index_codecs.size() > 1 ? 4 : 0);
}

Result<std::vector<ShardEntry>> decode_shard_index(const Sharding& sharding, ByteSpan encoded, int64_t entries,
                                                   uint64_t shard_bytes) {
  if (sharding.index_codecs.size() > 1) {
    auto content = crc32c_content(encoded);
    MAXPORT_RETURN_IF_ERROR(with_context(content, "shard index"));
    encoded = *content;
  }
  if (encoded.size() != static_cast<uint64_t>(entries) * kEntryBytes)
    return fail(ErrorKind::kCorruptData, "shard index of {} bytes, expected {}", encoded.size(),
                static_cast<uint64_t>(entries) * kEntryBytes);
  std::vector<ShardEntry> out(static_cast<size_t>(entries));
  for (size_t i = 0; i < out.size(); ++i) {
    const std::byte* at = encoded.data() + i * kEntryBytes;
    out[i] = {load_field(at, index_is_big_endian(sharding)), load_field(at + 8, index_is_big_endian(sharding))};
    if (out[i].missing()) continue;
    const auto end = checked_add(out[i].offset, out[i].length);
    if (!end || *end > shard_bytes)
      return fail(ErrorKind::kCorruptData, "shard index: sub-chunk {} is at byte {}, {} long, but the shard has {} bytes",
                  i, out[i].offset, out[i].length, shard_bytes);
  }
  return out;
}

Result<ByteSpan> encode_shard(const Sharding& sharding, DType dtype, std::span<const int64_t> shape,
                              const ElementSource& source, Scratch& scratch) {
  Bytes& out = scratch.shard();
  out.clear();
  std::vector<ShardEntry> entries;
  Result<> status;
  for_each_position(shard_grid(sharding, shape), [&](std::span<const int64_t> position) {
    ElementSource part = source;
    for (size_t i = 0; i < position.size(); ++i)
      part.data += position[i] * sharding.chunk_shape[i] * source.strides[i] * dtype_bytes(dtype);
    auto encoded = encode_chain(sharding.codecs, dtype, sharding.chunk_shape, part, scratch.inner());
    if (!encoded) {
      status = std::unexpected(std::move(encoded.error()));
      return false;
    }
    entries.push_back({out.size(), encoded->size()});
    out.insert(out.end(), encoded->begin(), encoded->end());
    return true;
  });
  MAXPORT_RETURN_IF_ERROR(status);
  const uint64_t index_bytes = shard_index_bytes(sharding, static_cast<int64_t>(entries.size()));
  const Bytes index = encode_index(sharding, entries, sharding.index_at_end ? 0 : index_bytes);
  out.insert(sharding.index_at_end ? out.end() : out.begin(), index.begin(), index.end());
  return ByteSpan(out);
}

}  // namespace maxport::zarr
