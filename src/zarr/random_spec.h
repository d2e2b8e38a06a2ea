// Random array layouts, for property tests and fuzzing: either version, any codecs that can be written, shards in shards,
// transposes, both byte orders.
#pragma once

#include <algorithm>
#include <random>

#include "zarr/array_spec.h"

namespace maxport::zarr {

using Random = std::mt19937_64;

inline int64_t pick(Random& random, int64_t min, int64_t max) {
  return std::uniform_int_distribution<int64_t>(min, max)(random);
}
/// True once in `n` times.
inline bool once_in(Random& random, int64_t n) { return pick(random, 1, n) == 1; }

inline std::vector<Codec> random_byte_codecs(Random& random, DType dtype) {
  std::vector<Codec> out;
  if (once_in(random, 3)) out.push_back({.kind = CodecKind::kZstd, .level = 1, .checksum = once_in(random, 2)});
  if (once_in(random, 3)) {
    const auto shuffle = static_cast<Shuffle>(pick(random, 0, 2));
    out.push_back({.kind = CodecKind::kBlosc,
                   .level = 1,
                   .compressor = once_in(random, 2) ? "lz4" : "zstd",
                   .shuffle = shuffle,
                   .type_size = shuffle == Shuffle::kNone ? 1 : dtype_bytes(dtype)});
  }
  if (once_in(random, 2)) out.push_back({.kind = CodecKind::kCrc32c});
  return out;
}

inline Codec random_transpose(Random& random, size_t rank, Version version) {
  Codec transpose{.kind = CodecKind::kTranspose};
  for (size_t i = rank; i-- > 0;) transpose.order.push_back(static_cast<int>(i));
  // v2 knows the reversal only.
  if (version == Version::kV3) std::ranges::shuffle(transpose.order, random);
  return transpose;
}

/// A shard of sub-chunks of this shape, which may be shards of single elements themselves.
inline Codec random_sharding(Random& random, DType dtype, const Codec& bytes, Shape sub_chunk) {
  auto sharding = std::make_shared<Sharding>();
  const Shape ones(sub_chunk.size(), 1);
  sharding->chunk_shape = std::move(sub_chunk);
  sharding->index_at_end = once_in(random, 2);
  sharding->index_codecs = {{.kind = CodecKind::kBytes, .big_endian = once_in(random, 4)}};
  if (!once_in(random, 4)) sharding->index_codecs.push_back({.kind = CodecKind::kCrc32c});
  sharding->codecs = random_byte_codecs(random, dtype);
  sharding->codecs.insert(sharding->codecs.begin(), bytes);
  if (once_in(random, 3)) {
    auto nested = std::make_shared<Sharding>(*sharding);
    nested->chunk_shape = ones;
    sharding->codecs = {{.kind = CodecKind::kSharding, .sharding = nested}};
  }
  return {.kind = CodecKind::kSharding, .sharding = sharding};
}

inline void add_codecs_v2(Random& random, const Codec& bytes, ArraySpec& spec) {
  spec.codecs.push_back(bytes);
  for (Codec& codec : random_byte_codecs(random, spec.dtype)) {
    if (codec.kind == CodecKind::kCrc32c) continue;
    codec.checksum = false;
    spec.codecs.push_back(codec);
    break;
  }
  spec.key_encoding = {.prefixed = false, .separator = once_in(random, 2) ? '.' : '/'};
}

inline void add_codecs_v3(Random& random, const Codec& bytes, Shape sub_chunk, ArraySpec& spec) {
  if (once_in(random, 2)) {
    if (!spec.codecs.empty()) {
      Shape stored;
      for (int axis : spec.codecs[0].order) stored.push_back(sub_chunk[static_cast<size_t>(axis)]);
      sub_chunk = std::move(stored);
    }
    spec.codecs.push_back(random_sharding(random, spec.dtype, bytes, std::move(sub_chunk)));
  } else {
    spec.codecs.push_back(bytes);
    for (Codec& codec : random_byte_codecs(random, spec.dtype)) spec.codecs.push_back(codec);
  }
  spec.key_encoding = {.prefixed = once_in(random, 2), .separator = once_in(random, 2) ? '.' : '/'};
  spec.fill_value.resize(static_cast<size_t>(dtype_bytes(spec.dtype)));
}

inline ArraySpec random_spec(Random& random) {
  const auto types = all_dtypes();
  ArraySpec spec;
  spec.version = once_in(random, 3) ? Version::kV2 : Version::kV3;
  spec.dtype = types[static_cast<size_t>(pick(random, 0, static_cast<int64_t>(types.size()) - 1))].dtype;
  const auto rank = static_cast<size_t>(pick(random, 0, 4));
  Shape sub_chunk;
  for (size_t i = 0; i < rank; ++i) {
    spec.shape.push_back(pick(random, 1, 9));
    sub_chunk.push_back(pick(random, 1, 4));
    spec.chunk_shape.push_back(sub_chunk[i] * (spec.version == Version::kV3 ? pick(random, 1, 3) : 1));
  }
  // v2 spells byte order only in the names of NumPy's own types.
  const bool can_swap = dtype_bytes(spec.dtype) > 1 && dtype_info(spec.dtype).zarr2[0] == '<';
  const Codec bytes{.kind = CodecKind::kBytes, .big_endian = can_swap && once_in(random, 3)};
  if (rank > 1 && once_in(random, 3)) spec.codecs.push_back(random_transpose(random, rank, spec.version));
  if (spec.version == Version::kV2)
    add_codecs_v2(random, bytes, spec);
  else
    add_codecs_v3(random, bytes, std::move(sub_chunk), spec);
  return spec;
}

}  // namespace maxport::zarr
