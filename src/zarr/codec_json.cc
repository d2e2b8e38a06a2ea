#include "zarr/codec_json.h"

#include <array>
#include <limits>

#include "base/json_members.h"
#include "zarr/byte_codecs.h"
#include "zarr/codec_chain.h"
#include "zarr/sharding.h"

namespace maxport::zarr {
namespace {

constexpr int kMaxNesting = 8;
constexpr int kMinZstdLevel = -131072, kMaxZstdLevel = 22;
constexpr std::array<std::string_view, 3> kShuffleNames = {"noshuffle", "shuffle", "bitshuffle"};

Result<int> level_of(JsonMembers& members, const std::string& name, int min, int max, std::optional<int> fallback) {
  if (fallback && !members.find(name)) return *fallback;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t level, members.integer(name, min, max));
  return static_cast<int>(level);
}

Result<std::string> blosc_compressor_of(JsonMembers& members) {
  MAXPORT_RETURN_IF_ERROR(members.choice("cname", {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"}));
  return members.text("cname");
}

/// Blosc of v2, where everything has a default and shuffle -1 means: by the size of the elements.
Result<Codec> parse_blosc_v2(JsonMembers& members, DType dtype) {
  Codec codec{.kind = CodecKind::kBlosc, .compressor = "lz4", .type_size = dtype_bytes(dtype)};
  if (members.find("cname")) {
    MAXPORT_ASSIGN_OR_RETURN(codec.compressor, blosc_compressor_of(members));
  }
  MAXPORT_ASSIGN_OR_RETURN(codec.level, level_of(members, "clevel", 0, 9, 5));
  MAXPORT_ASSIGN_OR_RETURN(const int shuffle, level_of(members, "shuffle", -1, 2, -1));
  const Shuffle automatic = dtype_bytes(dtype) == 1 ? Shuffle::kBit : Shuffle::kByte;
  codec.shuffle = shuffle < 0 ? automatic : static_cast<Shuffle>(shuffle);
  if (members.find("blocksize")) {
    MAXPORT_ASSIGN_OR_RETURN(codec.block_size, members.integer("blocksize", 0, std::numeric_limits<int32_t>::max()));
  }
  return codec;
}

Result<Codec> parse_blosc(JsonMembers& members) {
  Codec codec{.kind = CodecKind::kBlosc};
  MAXPORT_ASSIGN_OR_RETURN(codec.compressor, blosc_compressor_of(members));
  MAXPORT_ASSIGN_OR_RETURN(codec.level, level_of(members, "clevel", 0, 9, {}));
  MAXPORT_ASSIGN_OR_RETURN(const size_t shuffle, members.choice("shuffle", {"noshuffle", "shuffle", "bitshuffle"}));
  codec.shuffle = static_cast<Shuffle>(shuffle);
  // Means something to a shuffle only; TensorStore leaves it out without one.
  if (codec.shuffle != Shuffle::kNone || members.find("typesize")) {
    MAXPORT_ASSIGN_OR_RETURN(codec.type_size, members.integer("typesize", 1, 255));
  }
  MAXPORT_ASSIGN_OR_RETURN(codec.block_size, members.integer("blocksize", 0, std::numeric_limits<int32_t>::max()));
  return codec;
}

Result<Codec> parse_zstd(JsonMembers& members) {
  Codec codec{.kind = CodecKind::kZstd};
  MAXPORT_ASSIGN_OR_RETURN(codec.level, level_of(members, "level", kMinZstdLevel, kMaxZstdLevel, {}));
  if (const Json* checksum = members.find("checksum")) {
    MAXPORT_ASSIGN_OR_RETURN(codec.checksum, json_boolean(*checksum, members.member_path("checksum")));
  }
  return codec;
}

Result<Codec> parse_bytes(JsonMembers* members, DType dtype, const std::string& what) {
  Codec codec{.kind = CodecKind::kBytes};
  if (members && members->find("endian")) {
    MAXPORT_ASSIGN_OR_RETURN(const size_t endian, members->choice("endian", {"little", "big"}));
    codec.big_endian = endian == 1;
  } else if (dtype_bytes(dtype) > 1) {
    return fail(ErrorKind::kCorruptData, "{}: \"endian\" is missing; elements of {} have {} bytes", what,
                dtype_name(dtype), dtype_bytes(dtype));
  }
  return codec;
}

Result<Codec> parse_transpose(JsonMembers& members, size_t rank) {
  Codec codec{.kind = CodecKind::kTranspose};
  MAXPORT_ASSIGN_OR_RETURN(const Json* order, members.get("order"));
  const std::string what = members.member_path("order");
  const int axes = static_cast<int>(rank);
  // The two names are of an early draft of the format; TensorStore knows them.
  if (*order == "C" || *order == "F") {
    for (int i = 0; i < axes; ++i) codec.order.push_back(*order == "C" ? i : axes - 1 - i);
    return codec;
  }
  if (!order->is_array() || order->size() != rank)
    return fail(ErrorKind::kCorruptData, "{}: {} is not a list of {} axes", what, printable(order->dump()), rank);
  std::vector<bool> seen(rank);
  for (const Json& item : *order) {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t axis, json_integer(item, what, 0, axes - 1));
    if (seen[static_cast<size_t>(axis)])
      return fail(ErrorKind::kCorruptData, "{}: axis {} occurs twice", what, axis);
    seen[static_cast<size_t>(axis)] = true;
    codec.order.push_back(static_cast<int>(axis));
  }
  return codec;
}

Result<std::vector<Codec>> parse_chain(const Json& value, DType dtype, const Shape& chunk_shape, int depth,
                                       const std::string& what);

/// The index is an array of uint64; TensorStore writes it as plain bytes and a checksum.
Result<std::vector<Codec>> parse_index_codecs(const Json& value, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(std::vector<Codec> codecs, parse_chain(value, DType::kUint64, {1, 1}, kMaxNesting, what));
  const bool known = codecs[0].kind == CodecKind::kBytes &&
                     (codecs.size() == 1 || (codecs.size() == 2 && codecs[1].kind == CodecKind::kCrc32c));
  if (!known)
    return fail(ErrorKind::kUnsupported, "{}: only bytes, with or without crc32c, is supported for a shard index",
                what);
  return codecs;
}

Result<Codec> parse_sharding(JsonMembers& members, DType dtype, const Shape& outer, int depth) {
  if (depth >= kMaxNesting)
    return fail(ErrorKind::kUnsupported, "{}: shards nested deeper than {}", members.what(), kMaxNesting);
  auto sharding = std::make_shared<Sharding>();
  MAXPORT_ASSIGN_OR_RETURN(const Json* shape, members.get("chunk_shape"));
  MAXPORT_ASSIGN_OR_RETURN(sharding->chunk_shape, parse_extents(*shape, 1, members.member_path("chunk_shape")));
  if (sharding->chunk_shape.size() != outer.size())
    return fail(ErrorKind::kCorruptData, "{}: sub-chunk shape {} has another rank than the chunk shape {}",
                members.what(), shape_text(sharding->chunk_shape), shape_text(outer));
  int64_t entries = 1;
  for (size_t i = 0; i < outer.size(); ++i) {
    if (outer[i] % sharding->chunk_shape[i] != 0)
      return fail(ErrorKind::kCorruptData, "{}: sub-chunk shape {} does not divide the chunk shape {}", members.what(),
                  shape_text(sharding->chunk_shape), shape_text(outer));
    entries *= outer[i] / sharding->chunk_shape[i];
  }
  if (entries > kMaxShardEntries)
    return fail(ErrorKind::kResourceLimit, "{}: {} sub-chunks in a shard; at most {} are possible", members.what(),
                entries, kMaxShardEntries);
  MAXPORT_ASSIGN_OR_RETURN(const Json* codecs, members.get("codecs"));
  MAXPORT_ASSIGN_OR_RETURN(sharding->codecs, parse_chain(*codecs, dtype, sharding->chunk_shape, depth + 1,
                                                         members.member_path("codecs")));
  MAXPORT_ASSIGN_OR_RETURN(const Json* index_codecs, members.get("index_codecs"));
  MAXPORT_ASSIGN_OR_RETURN(sharding->index_codecs,
                           parse_index_codecs(*index_codecs, members.member_path("index_codecs")));
  if (members.find("index_location")) {
    MAXPORT_ASSIGN_OR_RETURN(const size_t location, members.choice("index_location", {"start", "end"}));
    sharding->index_at_end = location == 1;
  }
  return Codec{.kind = CodecKind::kSharding, .sharding = std::move(sharding)};
}

Result<Codec> parse_configured(const std::string& name, JsonMembers& members, DType dtype, const Shape& shape,
                               int depth) {
  if (name == "bytes") return parse_bytes(&members, dtype, members.what());
  if (name == "transpose") return parse_transpose(members, shape.size());
  if (name == "sharding_indexed") return parse_sharding(members, dtype, shape, depth);
  if (name == "blosc") return parse_blosc(members);
  if (name == "zstd") return parse_zstd(members);
  if (name == "crc32c") return Codec{.kind = CodecKind::kCrc32c};
  if (name == "gzip") {
    MAXPORT_ASSIGN_OR_RETURN(const int level, level_of(members, "level", 0, 9, {}));
    return Codec{.kind = CodecKind::kGzip, .level = level};
  }
  return fail(ErrorKind::kUnsupported, "{}: unknown codec \"{}\"", members.what(), printable(name));
}

Result<Codec> parse_codec(const Json& value, DType dtype, const Shape& shape, int depth, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  MAXPORT_ASSIGN_OR_RETURN(const std::string name, members.text("name"));
  static const Json kNoConfiguration = Json::object();
  const Json* configuration = members.find("configuration");
  MAXPORT_RETURN_IF_ERROR(members.finish());
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers details, JsonMembers::of(configuration ? *configuration : kNoConfiguration,
                                                                fmt::format("{} ({})", what, printable(name))));
  MAXPORT_ASSIGN_OR_RETURN(Codec codec, parse_configured(name, details, dtype, shape, depth));
  MAXPORT_RETURN_IF_ERROR(details.finish());
  return codec;
}

Result<std::vector<Codec>> parse_chain(const Json& value, DType dtype, const Shape& chunk_shape, int depth,
                                       const std::string& what) {
  if (!value.is_array()) return fail(ErrorKind::kCorruptData, "{}: expected an array, found {}", what, json_kind(value));
  std::vector<Codec> codecs;
  Shape shape = chunk_shape;
  const Codec* array = nullptr;
  codecs.reserve(value.size());
  for (const Json& item : value) {
    const std::string item_what = fmt::format("{}[{}]", what, codecs.size());
    MAXPORT_ASSIGN_OR_RETURN(Codec codec, parse_codec(item, dtype, shape, depth, item_what));
    const bool of_bytes = is_byte_codec(codec.kind);
    if (of_bytes != (array != nullptr))
      return fail(ErrorKind::kCorruptData, "{}: {} must not stand {} the codec that turns elements into bytes",
                  item_what, codec_name(codec.kind), of_bytes ? "before" : "after");
    // TensorStore refuses these too: parts of such a shard could not be read on their own.
    if (array && array->kind == CodecKind::kSharding)
      return fail(ErrorKind::kUnsupported, "{}: {} after sharding_indexed", item_what, codec_name(codec.kind));
    if (codec.kind == CodecKind::kTranspose)
      shape = permuted(shape, std::vector<size_t>(codec.order.begin(), codec.order.end()));
    codecs.push_back(std::move(codec));
    if (!of_bytes && codecs.back().kind != CodecKind::kTranspose) array = &codecs.back();
  }
  if (!array) return fail(ErrorKind::kCorruptData, "{}: no codec turns elements into bytes", what);
  return codecs;
}

Json configuration_json(const Codec& codec, DType dtype) {
  switch (codec.kind) {
    case CodecKind::kTranspose: return {{"order", codec.order}};
    case CodecKind::kBytes:
      if (dtype_bytes(dtype) == 1) return nullptr;
      return {{"endian", codec.big_endian ? "big" : "little"}};
    case CodecKind::kSharding: {
      Json out = {{"chunk_shape", codec.sharding->chunk_shape},
                  {"codecs", codecs_json(codec.sharding->codecs, dtype)},
                  {"index_codecs", codecs_json(codec.sharding->index_codecs, DType::kUint64)}};
      if (!codec.sharding->index_at_end) out["index_location"] = "start";
      return out;
    }
    case CodecKind::kBlosc: {
      Json out = {{"blocksize", codec.block_size},
                  {"clevel", codec.level},
                  {"cname", codec.compressor},
                  {"shuffle", kShuffleNames[static_cast<size_t>(codec.shuffle)]}};
      if (codec.shuffle != Shuffle::kNone) out["typesize"] = codec.type_size;
      return out;
    }
    case CodecKind::kZstd: return {{"checksum", codec.checksum}, {"level", codec.level}};
    case CodecKind::kGzip: return {{"level", codec.level}};
    default: return nullptr;
  }
}

}  // namespace

Result<std::vector<Codec>> parse_compressor(const Json& value, DType dtype, const std::string& what) {
  if (value.is_null()) return std::vector<Codec>();
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  MAXPORT_ASSIGN_OR_RETURN(const std::string id, members.text("id"));
  Codec codec;
  if (id == "blosc") {
    MAXPORT_ASSIGN_OR_RETURN(codec, parse_blosc_v2(members, dtype));
  } else if (id == "zstd") {
    codec.kind = CodecKind::kZstd;
    MAXPORT_ASSIGN_OR_RETURN(codec.level, level_of(members, "level", kMinZstdLevel, kMaxZstdLevel, 1));
  } else if (id == "zlib" || id == "gzip") {
    codec.kind = id == "zlib" ? CodecKind::kZlib : CodecKind::kGzip;
    MAXPORT_ASSIGN_OR_RETURN(codec.level, level_of(members, "level", 0, 9, 1));
  } else if (id == "bz2") {
    codec.kind = CodecKind::kBzip2;
    MAXPORT_ASSIGN_OR_RETURN(codec.level, level_of(members, "level", 1, 9, 1));
  } else {
    return fail(ErrorKind::kUnsupported, "{}: unknown compressor \"{}\"", what, printable(id));
  }
  MAXPORT_RETURN_IF_ERROR(members.finish());
  return std::vector<Codec>{std::move(codec)};
}

Json compressor_json(std::span<const Codec> byte_codecs) {
  if (byte_codecs.empty()) return nullptr;
  const Codec& codec = byte_codecs.front();
  if (codec.kind == CodecKind::kBlosc)
    return {{"blocksize", codec.block_size}, {"clevel", codec.level}, {"cname", codec.compressor}, {"id", "blosc"},
            {"shuffle", static_cast<int>(codec.shuffle)}};
  return {{"id", codec_name(codec.kind)}, {"level", codec.level}};
}

Result<std::vector<Codec>> parse_codecs(const Json& value, DType dtype, const Shape& chunk_shape,
                                        const std::string& what) {
  return parse_chain(value, dtype, chunk_shape, 0, what);
}

Json codecs_json(std::span<const Codec> codecs, DType dtype) {
  Json out = Json::array();
  for (const Codec& codec : codecs) {
    Json item = {{"name", codec_name(codec.kind)}};
    if (Json configuration = configuration_json(codec, dtype); !configuration.is_null())
      item["configuration"] = std::move(configuration);
    out.push_back(std::move(item));
  }
  return out;
}

Result<Shape> parse_extents(const Json& value, int64_t min, const std::string& what) {
  if (!value.is_array()) return fail(ErrorKind::kCorruptData, "{}: expected an array, found {}", what, json_kind(value));
  if (value.size() > static_cast<size_t>(kMaxRank))
    return fail(ErrorKind::kCorruptData, "{}: {} dimensions; at most {} are possible", what, value.size(), kMaxRank);
  Shape shape;
  for (const Json& item : value) {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t extent, json_integer(item, what, min, std::numeric_limits<int64_t>::max()));
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace maxport::zarr
