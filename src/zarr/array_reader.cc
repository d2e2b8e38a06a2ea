#include "zarr/array_reader.h"

#include <algorithm>

#include "zarr/codec_chain.h"
#include "zarr/grid.h"
#include "zarr/metadata.h"
#include "zarr/sharding.h"

namespace maxport::zarr {
namespace {

constexpr uint64_t kMaxMetadataBytes = uint64_t{1} << 20;
// Values up to this size are read in one go, even when parts of them would do.
constexpr uint64_t kSmallValueBytes = uint64_t{1} << 20;

/// The most memory that decoding takes at once: a chunk without sub-chunks, or the index of a shard.
uint64_t decoding_bytes(std::span<const Codec> codecs, std::span<const int64_t> chunk_shape, DType dtype) {
  const Chain chain = take_apart(codecs, chunk_shape);
  if (chain.array->kind == CodecKind::kBytes)
    return chain.byte_codecs.empty() ? 0 : static_cast<uint64_t>(element_count(chunk_shape) * dtype_bytes(dtype));
  const Sharding& sharding = *chain.array->sharding;
  const int64_t entries = element_count(shard_grid(sharding, chain.stored_shape));
  return std::max(shard_index_bytes(sharding, entries), decoding_bytes(sharding.codecs, sharding.chunk_shape, dtype));
}

/// True when parts of a chunk can be decoded from parts of its bytes.
bool decodes_in_parts(const ArraySpec& spec) {
  const Chain chain = take_apart(spec.codecs, spec.chunk_shape);
  return chain.array->kind == CodecKind::kSharding || chain.byte_codecs.empty();
}

/// Names the chunk in what a stream says.
class ContextStream final : public ChunkStream {
 public:
  ContextStream(std::unique_ptr<ChunkStream> stream, std::string context)
      : stream_(std::move(stream)), context_(std::move(context)) {}
  Result<> read(MutableByteSpan out) override {
    auto status = stream_->read(out);
    return status ? status : with_context(std::move(status), context_);
  }

 private:
  std::unique_ptr<ChunkStream> stream_;
  std::string context_;
};

/// A chunk that was decoded at once.
class DecodedStream final : public ChunkStream {
 public:
  explicit DecodedStream(Bytes bytes) : bytes_(std::move(bytes)) {}
  Result<> read(MutableByteSpan out) override {
    MAXPORT_CHECK(out.size() <= bytes_.size() - next_);
    std::copy_n(bytes_.data() + next_, out.size(), out.data());
    next_ += out.size();
    return {};
  }

 private:
  Bytes bytes_;
  size_t next_ = 0;
};

Result<std::optional<ArraySpec>> read_metadata(KeyValueReader& store, const std::string& name, Version version) {
  const std::string key = array_key(name, metadata_key(version));
  MAXPORT_ASSIGN_OR_RETURN(const std::optional<Bytes> text, store.read(key, kMaxMetadataBytes));
  if (!text) return std::nullopt;
  MAXPORT_ASSIGN_OR_RETURN(ArraySpec spec, parse_metadata(version, as_text(*text), printable(key)));
  return spec;
}

Result<ArraySpec> find_metadata(KeyValueReader& store, const std::string& name, std::optional<Version> version) {
  for (Version candidate : {Version::kV3, Version::kV2}) {
    if (version && *version != candidate) continue;
    MAXPORT_ASSIGN_OR_RETURN(std::optional<ArraySpec> spec, read_metadata(store, name, candidate));
    if (spec) return *std::move(spec);
  }
  return fail(ErrorKind::kNotFound, "no {} of array \"{}\" in the store",
              version ? metadata_key(*version) : "zarr.json or .zarray", printable(name));
}

}  // namespace

ArrayReader::ArrayReader(KeyValueReader& store, std::string name, ArraySpec spec, const ReadOptions& options)
    : store_(&store), name_(std::move(name)), spec_(std::move(spec)), options_(options), fill_(spec_.fill_value) {
  fill_.resize(static_cast<size_t>(dtype_bytes(spec_.dtype)));
}

Result<ArrayReader> ArrayReader::open(KeyValueReader& store, std::string name, std::optional<Version> version,
                                      const ReadOptions& options) {
  MAXPORT_ASSIGN_OR_RETURN(ArraySpec spec, find_metadata(store, name, version));
  const uint64_t needed = decoding_bytes(spec.codecs, spec.chunk_shape, spec.dtype);
  if (needed > options.max_chunk_bytes)
    return fail(ErrorKind::kResourceLimit, "array \"{}\": a chunk of {} {} elements takes {} bytes; the limit is {}",
                printable(name), shape_text(spec.chunk_shape), dtype_name(spec.dtype), needed, options.max_chunk_bytes);
  return ArrayReader(store, std::move(name), std::move(spec), options);
}

Result<> ArrayReader::read(const Box& box, MutableByteSpan out) const {
  Scratch scratch;
  return read(box, out, scratch);
}

Result<> ArrayReader::read(const Box& box, MutableByteSpan out, Scratch& scratch) const {
  if (!contains(spec_.shape, box))
    return fail(ErrorKind::kInvalidArgument, "array \"{}\": box of {} at {} is not within shape {}", printable(name_),
                shape_text(box.shape), shape_text(box.origin), shape_text(spec_.shape));
  const int64_t bytes = element_count(box.shape) * dtype_bytes(spec_.dtype);
  if (static_cast<int64_t>(out.size()) != bytes)
    return fail(ErrorKind::kInvalidArgument, "array \"{}\": a box of {} takes {} bytes, {} were given",
                printable(name_), shape_text(box.shape), bytes, out.size());
  const std::vector<int64_t> strides = row_major_strides(box.shape);
  Result<> status;
  for_each_position(touched_chunks(box, spec_.chunk_shape), [&](std::span<const int64_t> position) {
    const Box chunk = chunk_box(spec_, position);
    Box part = intersect(chunk, box);
    ElementTarget target{out.data(), strides};
    for (size_t i = 0; i < position.size(); ++i) {
      target.data += (part.origin[i] - box.origin[i]) * strides[i] * dtype_bytes(spec_.dtype);
      part.origin[i] -= chunk.origin[i];
    }
    status = read_region(position, part, target, scratch);
    return status.has_value();
  });
  return status;
}

bool ArrayReader::has_chunk(std::span<const int64_t> position) const {
  const Shape grid = grid_shape(spec_);
  bool within = position.size() == grid.size();
  for (size_t i = 0; within && i < grid.size(); ++i) within = position[i] >= 0 && position[i] < grid[i];
  return within;
}

Result<std::unique_ptr<ChunkStream>> ArrayReader::stream(std::span<const int64_t> position) const {
  MAXPORT_CHECK(has_chunk(position));
  const std::string key = chunk_store_key(position);
  MAXPORT_ASSIGN_OR_RETURN(const std::optional<ValueLocation> where, store_->locate(key));
  if (where && can_stream(spec_)) {
    auto stream = stream_chunk(spec_, std::make_unique<StoredSource>(*store_, key, where->length));
    if (!stream) return with_context(std::move(stream), chunk_text(key));
    return std::make_unique<ContextStream>(*std::move(stream), chunk_text(key));
  }
  Bytes decoded(static_cast<size_t>(chunk_bytes(spec_)));
  Scratch scratch;
  MAXPORT_RETURN_IF_ERROR(read_chunk(position, decoded, scratch));
  return std::make_unique<DecodedStream>(std::move(decoded));
}

Result<> ArrayReader::read_chunk(std::span<const int64_t> position, MutableByteSpan out, Scratch& scratch) const {
  if (!has_chunk(position) || static_cast<int64_t>(out.size()) != chunk_bytes(spec_))
    return fail(ErrorKind::kInvalidArgument, "array \"{}\": no chunk {} of {} bytes; the grid is {}, a chunk has {} bytes",
                printable(name_), shape_text(position), out.size(), shape_text(grid_shape(spec_)), chunk_bytes(spec_));
  return read_region(position, Box::whole(spec_.chunk_shape), {out.data(), row_major_strides(spec_.chunk_shape)},
                     scratch);
}

std::string ArrayReader::chunk_store_key(std::span<const int64_t> position) const {
  std::string key = array_key(name_, "");
  append_chunk_key(spec_, position, key);
  return key;
}

Result<> ArrayReader::read_region(std::span<const int64_t> position, const Box& region, const ElementTarget& target,
                                  Scratch& scratch) const {
  const std::string key = chunk_store_key(position);
  auto status = read_value(key, region, target, scratch);
  return status ? status : with_context(std::move(status), chunk_text(key));
}

Result<> ArrayReader::read_value(const std::string& key, const Box& region, const ElementTarget& target,
                                 Scratch& scratch) const {
  const RegionContext context{.dtype = spec_.dtype, .fill = fill_, .fill_missing = options_.fill_missing};
  if (decodes_in_parts(spec_)) {
    MAXPORT_ASSIGN_OR_RETURN(const std::optional<ValueLocation> where, store_->locate(key));
    if (!where) return missing(region, target);
    if (where->length > kSmallValueBytes) {
      StoredSource source(*store_, key, where->length);
      return decode_region(context, spec_.codecs, spec_.chunk_shape, source, region, target, scratch);
    }
  }
  // An encoder may make its input a little larger, never twice as large.
  const uint64_t limit = std::max(kSmallValueBytes, 2 * static_cast<uint64_t>(chunk_bytes(spec_)));
  MAXPORT_ASSIGN_OR_RETURN(const std::optional<Bytes> value, store_->read(key, limit));
  if (!value) return missing(region, target);
  MemorySource source(*value);
  return decode_region(context, spec_.codecs, spec_.chunk_shape, source, region, target, scratch);
}

Result<> ArrayReader::missing(const Box& region, const ElementTarget& target) const {
  if (!options_.fill_missing) return fail(ErrorKind::kNotFound, "the chunk is missing from the store");
  copy_elements(spec_.dtype, region.shape, {fill_.data(), std::vector<int64_t>(region.shape.size())}, target);
  return {};
}

std::string ArrayReader::chunk_text(const std::string& key) const {
  const std::string text = fmt::format("array \"{}\", chunk {}", printable(name_), printable(key));
  const auto where = store_->locate(key);
  if (!where || !*where) return text;
  if ((*where)->path.empty()) return text + fmt::format(" ({} bytes in the index)", (*where)->length);
  return text + fmt::format(" ({} bytes at byte {} of {})", (*where)->length, (*where)->offset,
                            printable((*where)->path));
}

}  // namespace maxport::zarr
