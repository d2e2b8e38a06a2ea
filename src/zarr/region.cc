#include "zarr/region.h"

#include "zarr/byte_codecs.h"
#include "zarr/codec_chain.h"
#include "zarr/grid.h"
#include "zarr/sharding.h"

namespace maxport::zarr {
namespace {

// Bytes of codecs that come before the last compressor of a chain: nothing sensible doubles what it is given.
uint64_t intermediate_limit(uint64_t chunk_bytes) { return 2 * chunk_bytes + (uint64_t{1} << 20); }

/// A region of the stored (transposed) array and where its elements go.
struct Work {
  const RegionContext& context;
  const Chain& chain;
  Box region;
  ElementTarget target;
  Scratch& scratch;

  int64_t element_bytes() const { return dtype_bytes(context.dtype); }
  uint64_t stored_bytes() const {
    return static_cast<uint64_t>(element_count(chain.stored_shape) * element_bytes());
  }
  bool whole() const { return region.shape == chain.stored_shape; }
};

/// First element of a region in a dense array of these strides.
int64_t offset_of(std::span<const int64_t> origin, std::span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < origin.size(); ++i) offset += origin[i] * strides[i];
  return offset;
}

/// Reads `region` of plain bytes: in one go where the rows lie close together, else split along the outermost axis.
Result<> read_plain(const Work& work, ByteSource& source, const Box& region, std::byte* target) {
  const std::vector<int64_t> strides = row_major_strides(work.chain.stored_shape);
  int64_t covering = 1;
  for (size_t i = 0; i < strides.size(); ++i) covering += (region.shape[i] - 1) * strides[i];
  constexpr int64_t kSmallBytes = 64 << 10;
  if (covering > 2 * element_count(region.shape) && covering * work.element_bytes() > kSmallBytes) {
    size_t axis = 0;
    while (region.shape[axis] == 1) ++axis;
    Box part = region;
    part.shape[axis] = 1;
    const int64_t step = work.target.strides[axis] * work.element_bytes();
    for (int64_t i = 0; i < region.shape[axis]; ++i, ++part.origin[axis], target += step)
      MAXPORT_RETURN_IF_ERROR(read_plain(work, source, part, target));
    return {};
  }
  Bytes keep;
  const auto offset = static_cast<uint64_t>(offset_of(region.origin, strides) * work.element_bytes());
  MAXPORT_ASSIGN_OR_RETURN(ByteSpan bytes,
                           source.read(offset, static_cast<uint64_t>(covering * work.element_bytes()), keep));
  if (swaps_bytes(*work.chain.array, work.context.dtype)) {
    MutableByteSpan swapped = work.scratch.swapped().take(bytes.size());
    std::ranges::copy(bytes, swapped.begin());
    reverse_bytes(work.context.dtype, swapped);
    bytes = swapped;
  }
  copy_elements(work.context.dtype, region.shape, {bytes.data(), strides}, {target, work.target.strides});
  return {};
}

/// Plain elements, after codecs of bytes or not.
Result<> decode_elements(const Work& work, ByteSource& source) {
  const std::span<const Codec> codecs = work.chain.byte_codecs;
  const uint64_t bytes = work.stored_bytes();
  if (codecs.empty()) {
    if (source.size() != bytes)
      return fail(ErrorKind::kCorruptData, "the chunk has {} bytes, expected {}", source.size(), bytes);
    return read_plain(work, source, work.region, work.target.data);
  }
  Bytes keep;
  MAXPORT_ASSIGN_OR_RETURN(ByteSpan encoded, source.read_all(keep));
  MAXPORT_ASSIGN_OR_RETURN(encoded,
                           decode_byte_codecs(codecs.subspan(1), encoded, intermediate_limit(bytes), work.scratch));
  const bool swap = swaps_bytes(*work.chain.array, work.context.dtype);
  if (!swap && work.whole() && is_dense(work.region.shape, work.target.strides))
    return decode_bytes(codecs[0], encoded, {work.target.data, bytes}, work.scratch);
  if (bytes > largest_decoded_size(codecs[0], encoded.size()))
    return fail(ErrorKind::kCorruptData, "{} bytes of {} cannot hold a chunk of {} bytes", encoded.size(),
                codec_name(codecs[0].kind), bytes);
  MutableByteSpan stored = work.scratch.decoded().take(bytes);
  MAXPORT_RETURN_IF_ERROR(decode_bytes(codecs[0], encoded, stored, work.scratch));
  MemorySource decoded(stored);
  return read_plain(work, decoded, work.region, work.target.data);
}

Result<std::vector<ShardEntry>> read_index(const Sharding& sharding, ByteSource& shard, int64_t entries) {
  const uint64_t bytes = shard_index_bytes(sharding, entries);
  if (shard.size() < bytes)
    return fail(ErrorKind::kCorruptData, "the shard has {} bytes, too few for its index of {} bytes", shard.size(),
                bytes);
  Bytes keep;
  MAXPORT_ASSIGN_OR_RETURN(const ByteSpan encoded,
                           shard.read(sharding.index_at_end ? shard.size() - bytes : 0, bytes, keep));
  return decode_shard_index(sharding, encoded, entries, shard.size());
}

Result<> decode_sub_chunk(const Work& work, ByteSource& shard, const ShardEntry& entry,
                          std::span<const int64_t> position) {
  const Sharding& sharding = *work.chain.array->sharding;
  Box extent{std::vector<int64_t>(position.size()), sharding.chunk_shape};
  for (size_t i = 0; i < position.size(); ++i) extent.origin[i] = position[i] * sharding.chunk_shape[i];
  Box part = intersect(extent, work.region);
  ElementTarget target = work.target;
  for (size_t i = 0; i < position.size(); ++i) {
    target.data += (part.origin[i] - work.region.origin[i]) * target.strides[i] * work.element_bytes();
    part.origin[i] -= extent.origin[i];
  }
  if (!entry.missing()) {
    PartSource bytes(shard, entry.offset, entry.length);
    return with_context(decode_region(work.context, sharding.codecs, sharding.chunk_shape, bytes, part, target,
                                      work.scratch.inner()),
                        fmt::format("sub-chunk {} at byte {} of the shard", shape_text(position), entry.offset));
  }
  if (!work.context.fill_missing)
    return fail(ErrorKind::kNotFound, "sub-chunk {} is missing from the shard", shape_text(position));
  copy_elements(work.context.dtype, part.shape,
                {work.context.fill.data(), std::vector<int64_t>(part.shape.size())}, target);
  return {};
}

Result<> decode_shard(const Work& work, ByteSource& shard) {
  const Sharding& sharding = *work.chain.array->sharding;
  const Shape grid = shard_grid(sharding, work.chain.stored_shape);
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<ShardEntry> index, read_index(sharding, shard, element_count(grid)));
  const std::vector<int64_t> strides = row_major_strides(grid);
  Result<> status;
  for_each_position(touched_chunks(work.region, sharding.chunk_shape), [&](std::span<const int64_t> position) {
    status = decode_sub_chunk(work, shard, index[static_cast<size_t>(offset_of(position, strides))], position);
    return status.has_value();
  });
  return status;
}

}  // namespace

Result<> decode_region(const RegionContext& context, std::span<const Codec> codecs, std::span<const int64_t> chunk_shape,
                       ByteSource& source, const Box& region, const ElementTarget& target, Scratch& scratch) {
  if (region.empty()) return {};
  const Chain chain = take_apart(codecs, chunk_shape);
  const Work work{context,
                  chain,
                  {permuted(region.origin, chain.axes), permuted(region.shape, chain.axes)},
                  {target.data, permuted(target.strides, chain.axes)},
                  scratch};
  return chain.array->kind == CodecKind::kBytes ? decode_elements(work, source) : decode_shard(work, source);
}

}  // namespace maxport::zarr
