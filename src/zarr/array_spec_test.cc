#include "zarr/array_spec.h"

#include <gmock/gmock.h>

namespace maxport::zarr {
namespace {

std::string key(Version version, std::vector<int64_t> position) {
  const Shape ones(position.size(), 1), shape(position.size(), 1000000);
  return chunk_key(*make_array_spec(version, DType::kInt8, shape.size() > 3 ? ones : shape, ones, Compression::kNone),
                   position);
}

TEST(ChunkKey, IsSpelledAsEachVersionSpellsIt) {
  EXPECT_EQ(key(Version::kV3, {}), "c");
  EXPECT_EQ(key(Version::kV3, {0}), "c/0");
  EXPECT_EQ(key(Version::kV3, {12, 0, 999999}), "c/12/0/999999");
  EXPECT_EQ(key(Version::kV2, {}), "0");
  EXPECT_EQ(key(Version::kV2, {7}), "7");
  EXPECT_EQ(key(Version::kV2, {12, 0, 999999}), "12.0.999999");
  EXPECT_EQ(array_key("a.b", "c/0"), "a.b/c/0");
  EXPECT_EQ(array_key("", "zarr.json"), "zarr.json");
}

TEST(ArraySpec, CountsChunksAndCutsTheLastOnes) {
  const ArraySpec spec = *make_array_spec(Version::kV3, DType::kBfloat16, {7, 6}, {3, 2}, Compression::kBlosc);
  EXPECT_EQ(grid_shape(spec), (Shape{3, 3}));
  EXPECT_EQ(chunk_count(spec), 9);
  EXPECT_EQ(chunk_bytes(spec), 12);
  EXPECT_EQ(chunk_box(spec, std::vector<int64_t>{0, 1}), (Box{{0, 2}, {3, 2}}));
  EXPECT_EQ(chunk_box(spec, std::vector<int64_t>{2, 2}), (Box{{6, 4}, {1, 2}}));
  const ArraySpec scalar = *make_array_spec(Version::kV2, DType::kInt64, {}, {}, Compression::kZstd);
  EXPECT_EQ(chunk_count(scalar), 1);
  EXPECT_EQ(chunk_bytes(scalar), 8);
  const ArraySpec empty = *make_array_spec(Version::kV2, DType::kInt64, {0, 3}, {1, 1}, Compression::kZstd);
  EXPECT_EQ(chunk_count(empty), 0);
}

TEST(ArraySpec, RefusesWhatCannotBeStored) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  struct Case {
    Version version;
    DType dtype;
    Shape shape, chunks;
    Compression compression;
    const char* text;
  };
  const Case cases[] = {
      {Version::kV3, DType::kInt8, Shape(33, 1), Shape(33, 1), Compression::kNone, "33 dimensions"},
      {Version::kV3, DType::kInt8, {2, 2}, {2}, Compression::kNone, "has 1 dimensions, the array has 2"},
      {Version::kV3, DType::kInt8, {-1}, {2}, Compression::kNone, "negative extent"},
      {Version::kV3, DType::kInt8, {4}, {0}, Compression::kNone, "extent below 1"},
      {Version::kV3, DType::kInt32, {kHuge, 2}, {1, 1}, Compression::kNone, "too large to address"},
      {Version::kV3, DType::kInt8, {1, 1}, {kHuge, 8}, Compression::kNone, "exceeds 1099511627776 bytes"},
      {Version::kV3, DType::kInt16, {1}, {(int64_t{1} << 39) + 1}, Compression::kNone, "exceeds 1099511627776 bytes"},
      {Version::kV2, DType::kInt8, {1}, {1}, Compression::kBlosc, "choose zstd or none"},
      {Version::kV2, DType::kInt8, {1}, {1}, Compression::kLz4, "choose zstd or none"},
      {Version::kV3, DType::kInt8, {1}, {int64_t{1} << 31}, Compression::kLz4, "blosc takes at most 2147483631"},
      {Version::kV3, DType::kInt8, {1}, {int64_t{1} << 31}, Compression::kBlosc, "blosc takes at most 2147483631"},
      {Version::kV3, DType::kUint4, {1}, {1}, Compression::kNone, "do not know the element type uint4"},
  };
  for (const Case& c : cases) {
    auto spec = make_array_spec(c.version, c.dtype, c.shape, c.chunks, c.compression);
    ASSERT_FALSE(spec) << c.text;
    EXPECT_THAT(spec.error().message(), testing::HasSubstr(c.text));
  }
  EXPECT_TRUE(make_array_spec(Version::kV3, DType::kInt16, {1}, {int64_t{1} << 39}, Compression::kNone));
}

TEST(ArraySpec, SaysWhetherChunksAreCompressed) {
  const auto spec = [](Compression compression) { return *make_array_spec(Version::kV3, DType::kInt16, {8}, {8}, compression); };
  EXPECT_FALSE(compresses(spec(Compression::kNone)));
  for (Compression compression : {Compression::kBlosc, Compression::kLz4, Compression::kZstd}) {
    EXPECT_TRUE(compresses(spec(compression)));
    ArraySpec sharded = spec(Compression::kNone);
    sharded.codecs = {{.kind = CodecKind::kSharding,
                       .sharding = std::make_shared<Sharding>(Sharding{{4}, spec(compression).codecs, {{.kind = CodecKind::kBytes}}})}};
    EXPECT_TRUE(compresses(sharded));
  }
}

}  // namespace
}  // namespace maxport::zarr
