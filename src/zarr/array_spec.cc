#include "zarr/array_spec.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/checked.h"

namespace maxport::zarr {
namespace {

// BLOSC_MAX_BUFFERSIZE; stated here so that planning needs no codec library.
constexpr int64_t kMaxBloscBytes = std::numeric_limits<int32_t>::max() - 16;

std::vector<Codec> written_codecs(Version version, DType dtype, Compression compression) {
  std::vector<Codec> codecs = {{.kind = CodecKind::kBytes}};
  const int64_t element = dtype_bytes(dtype);
  Codec blosc{.kind = CodecKind::kBlosc, .level = 1, .compressor = "zstd", .shuffle = element == 1 ? Shuffle::kNone : Shuffle::kByte,
              .type_size = element};
  if (compression == Compression::kLz4) blosc.compressor = "lz4", blosc.shuffle = Shuffle::kBit;
  if (uses_blosc(compression)) codecs.push_back(std::move(blosc));
  if (compression == Compression::kZstd) codecs.push_back({.kind = CodecKind::kZstd, .level = 1, .checksum = true});
  // A zstd frame carries its own checksum.
  if (version == Version::kV3 && compression != Compression::kZstd) codecs.push_back({.kind = CodecKind::kCrc32c});
  return codecs;
}

}  // namespace

bool Codec::operator==(const Codec& other) const {
  if (kind != other.kind || level != other.level || checksum != other.checksum || big_endian != other.big_endian ||
      order != other.order || compressor != other.compressor || shuffle != other.shuffle ||
      type_size != other.type_size || block_size != other.block_size)
    return false;
  if (!sharding || !other.sharding) return !sharding && !other.sharding;
  return *sharding == *other.sharding;
}

Result<ArraySpec> make_array_spec(Version version, DType dtype, Shape shape, Shape chunk_shape,
                                  Compression compression) {
  ArraySpec spec{.version = version,
                 .shape = std::move(shape),
                 .chunk_shape = std::move(chunk_shape),
                 .dtype = dtype,
                 .codecs = written_codecs(version, dtype, compression)};
  if (version == Version::kV2) spec.key_encoding = {.prefixed = false, .separator = '.'};
  if (version == Version::kV3) spec.fill_value.resize(static_cast<size_t>(dtype_bytes(dtype)));
  MAXPORT_RETURN_IF_ERROR(check_array_spec(spec, ErrorKind::kInvalidArgument));
  if (dtype == DType::kUint4 || dtype == DType::kFloat6E2m3fn || dtype == DType::kFloat6E3m2fn)
    return fail(ErrorKind::kUnsupported, "stock readers of Zarr arrays do not know the element type {}",
                dtype_name(dtype));
  if (uses_blosc(compression)) {
    if (version == Version::kV2)
      return fail(ErrorKind::kInvalidArgument, "blosc is written in Zarr v3 only; choose zstd or none for Zarr v2");
    if (chunk_bytes(spec) > kMaxBloscBytes)
      return fail(ErrorKind::kInvalidArgument, "chunk shape {} is {} bytes; blosc takes at most {}",
                  shape_text(spec.chunk_shape), chunk_bytes(spec), kMaxBloscBytes);
  }
  return spec;
}

Result<> check_array_spec(const ArraySpec& spec, ErrorKind kind) {
  if (spec.shape.size() > static_cast<size_t>(kMaxRank))
    return fail(kind, "an array of {} dimensions; at most {} are possible", spec.shape.size(), kMaxRank);
  if (spec.chunk_shape.size() != spec.shape.size())
    return fail(kind, "chunk shape {} has {} dimensions, the array has {}", shape_text(spec.chunk_shape),
                spec.chunk_shape.size(), spec.shape.size());
  if (std::ranges::any_of(spec.shape, [](int64_t extent) { return extent < 0; }))
    return fail(kind, "shape {} has a negative extent", shape_text(spec.shape));
  if (std::ranges::any_of(spec.chunk_shape, [](int64_t extent) { return extent < 1; }))
    return fail(kind, "chunk shape {} has an extent below 1", shape_text(spec.chunk_shape));
  const int64_t size = dtype_bytes(spec.dtype);
  auto elements = checked_product(spec.shape);
  if (!elements || !checked_multiply(*elements, size))
    return fail(kind, "shape {} of {} is too large to address", shape_text(spec.shape), dtype_name(spec.dtype));
  auto chunk_elements = checked_product(spec.chunk_shape);
  if (!chunk_elements || *chunk_elements > kMaxChunkBytes / size)
    return fail(kind, "chunk shape {} of {} exceeds {} bytes", shape_text(spec.chunk_shape), dtype_name(spec.dtype),
                kMaxChunkBytes);
  return {};
}

bool compresses(const ArraySpec& spec) {
  return std::ranges::any_of(spec.codecs, [](const Codec& codec) {
    switch (codec.kind) {
      case CodecKind::kBlosc:
      case CodecKind::kZstd:
      case CodecKind::kGzip:
      case CodecKind::kZlib:
      case CodecKind::kBzip2: return true;
      case CodecKind::kTranspose:
      case CodecKind::kBytes:
      case CodecKind::kCrc32c: return false;
      case CodecKind::kSharding: return compresses({.codecs = codec.sharding->codecs});
    }
    return false;
  });
}

Shape grid_shape(const ArraySpec& spec) {
  Shape grid(spec.shape.size());
  for (size_t i = 0; i < grid.size(); ++i) {
    const int64_t whole = spec.shape[i] / spec.chunk_shape[i];
    grid[i] = whole + (spec.shape[i] % spec.chunk_shape[i] != 0);
  }
  return grid;
}

int64_t chunk_count(const ArraySpec& spec) { return element_count(grid_shape(spec)); }

int64_t chunk_bytes(const ArraySpec& spec) { return element_count(spec.chunk_shape) * dtype_bytes(spec.dtype); }

Box chunk_box(const ArraySpec& spec, std::span<const int64_t> position) {
  Box box{std::vector<int64_t>(position.size()), Shape(position.size())};
  for (size_t i = 0; i < position.size(); ++i) {
    box.origin[i] = position[i] * spec.chunk_shape[i];
    box.shape[i] = std::min(spec.chunk_shape[i], spec.shape[i] - box.origin[i]);
  }
  return box;
}

void append_chunk_key(const ArraySpec& spec, std::span<const int64_t> position, std::string& out) {
  const KeyEncoding& encoding = spec.key_encoding;
  if (encoding.prefixed) out += 'c';
  if (position.empty() && !encoding.prefixed) out += '0';
  for (size_t i = 0; i < position.size(); ++i) {
    if (i > 0 || encoding.prefixed) out += encoding.separator;
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, position[i]).ptr;
    out.append(digits, end);
  }
}

std::string chunk_key(const ArraySpec& spec, std::span<const int64_t> position) {
  std::string out;
  append_chunk_key(spec, position, out);
  return out;
}

std::string array_key(std::string_view name, std::string_view key) {
  std::string out;
  out.reserve(name.size() + 1 + key.size());
  out += name;
  if (!name.empty()) out += '/';
  out += key;
  return out;
}

}  // namespace maxport::zarr
