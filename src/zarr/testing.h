// What several tests of this room need: random bytes, a store in memory, and arrays in it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "storage/key_value_store.h"
#include "zarr/chunk.h"
#include "zarr/grid.h"
#include "zarr/metadata.h"
#include "zarr/random_spec.h"

namespace maxport::zarr {

/// Values in a map; counts the bytes that were read.
class MapStore final : public KeyValueReader {
 public:
  std::map<std::string, Bytes, std::less<>> values;
  uint64_t bytes_read = 0;

  Result<std::optional<Bytes>> read(std::string_view key, uint64_t max_bytes) override {
    const auto at = values.find(key);
    if (at == values.end()) return std::nullopt;
    if (at->second.size() > max_bytes) return fail(ErrorKind::kResourceLimit, "too large");
    bytes_read += at->second.size();
    return at->second;
  }
  Result<Bytes> read_range(std::string_view key, uint64_t offset, uint64_t length) override {
    const auto at = values.find(key);
    if (at == values.end()) return fail(ErrorKind::kNotFound, "no such key");
    if (offset + length > at->second.size()) return fail(ErrorKind::kCorruptData, "beyond the value");
    bytes_read += length;
    return Bytes(at->second.begin() + static_cast<ptrdiff_t>(offset),
                 at->second.begin() + static_cast<ptrdiff_t>(offset + length));
  }
  Result<std::optional<ValueLocation>> locate(std::string_view key) override {
    const auto at = values.find(key);
    if (at == values.end()) return std::nullopt;
    return ValueLocation{.path = "store/d/0", .offset = 4096, .length = at->second.size()};
  }
  Result<> list(std::string_view, const std::function<Result<>(std::string_view, const ValueLocation&)>&) override {
    return fail(ErrorKind::kUnsupported, "not needed here");
  }
};

/// Noise, the same for the same count.
inline Bytes random_bytes(size_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  Bytes out(count);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

/// Bytes that compress a little; of bool only 0 and 1.
inline Bytes random_bytes(Random& random, int64_t count, DType dtype = DType::kUint8) {
  Bytes out(static_cast<size_t>(count));
  for (auto& byte : out) byte = std::byte(dtype == DType::kBool ? random() % 2 : random() % 40);
  return out;
}

inline Bytes copy_of(ByteSpan bytes) { return {bytes.begin(), bytes.end()}; }

/// The bytes of a box of a dense array.
inline Bytes box_of(DType dtype, const Shape& shape, const Bytes& array, const Box& box) {
  Bytes out(static_cast<size_t>(element_count(box.shape) * dtype_bytes(dtype)));
  const auto strides = row_major_strides(shape);
  size_t at = 0;
  for_each_position(box, [&](std::span<const int64_t> position) {
    int64_t element = 0;
    for (size_t i = 0; i < position.size(); ++i) element += position[i] * strides[i];
    const auto size = static_cast<size_t>(dtype_bytes(dtype));
    std::copy_n(array.begin() + element * dtype_bytes(dtype), size, out.begin() + static_cast<ptrdiff_t>(at));
    at += size;
    return true;
  });
  return out;
}

/// Cuts a dense array into chunks and stores it under `name`; what lies beyond the edges is 0xEE.
inline void store_array(const ArraySpec& spec, const Bytes& array, const std::string& name, MapStore& store) {
  Scratch scratch;
  const std::string text = metadata_text(spec);
  store.values[array_key(name, metadata_key(spec.version))] = copy_of(as_bytes(text));
  const auto size = static_cast<size_t>(dtype_bytes(spec.dtype));
  for_each_position(grid_shape(spec), [&](std::span<const int64_t> position) {
    const Box box = chunk_box(spec, position);
    const Bytes part = box_of(spec.dtype, spec.shape, array, box);
    Bytes chunk(static_cast<size_t>(chunk_bytes(spec)), std::byte{0xEE});
    const auto strides = row_major_strides(spec.chunk_shape);
    size_t at = 0;
    for_each_position(box.shape, [&](std::span<const int64_t> x) {
      int64_t element = 0;
      for (size_t i = 0; i < x.size(); ++i) element += x[i] * strides[i];
      std::copy_n(part.begin() + static_cast<ptrdiff_t>(at), size,
                  chunk.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(element) * size));
      at += size;
      return true;
    });
    auto encoded = encode_chunk(spec, chunk, scratch);
    EXPECT_TRUE(encoded) << encoded.error().message();
    store.values[array_key(name, chunk_key(spec, position))] = copy_of(*encoded);
    return true;
  });
}

}  // namespace maxport::zarr
