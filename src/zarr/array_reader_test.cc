#include "zarr/array_reader.h"

#include <gmock/gmock.h>

#include "zarr/testing.h"

namespace maxport::zarr {
namespace {

using testing::HasSubstr;

Box random_box(Random& random, const Shape& shape) {
  Box box;
  for (int64_t extent : shape) {
    box.origin.push_back(pick(random, 0, extent - 1));
    box.shape.push_back(pick(random, 1, extent - box.origin.back()));
  }
  return box;
}

ArraySpec sharded_spec(int64_t rows) {
  ArraySpec spec = *make_array_spec(Version::kV3, DType::kFloat32, {rows, 1024}, {rows, 1024}, Compression::kNone);
  auto sharding = std::make_shared<Sharding>();
  sharding->chunk_shape = {1, 1024};
  sharding->codecs = spec.codecs;
  sharding->index_codecs = {{.kind = CodecKind::kBytes}, {.kind = CodecKind::kCrc32c}};
  spec.codecs = {{.kind = CodecKind::kSharding, .sharding = sharding}};
  return spec;
}

TEST(ArrayReader, ReadsAnyBoxOfAnyArrayAsItWasStored) {
  Random random(1);
  Scratch scratch;
  for (int round = 0; round < 1500; ++round) {
    const ArraySpec spec = random_spec(random);
    SCOPED_TRACE(metadata_text(spec));
    const Bytes array = random_bytes(random, element_count(spec.shape) * dtype_bytes(spec.dtype), spec.dtype);
    MapStore store;
    const std::string name = round % 5 == 0 ? "" : "params.layer";
    store_array(spec, array, name, store);
    auto reader = ArrayReader::open(store, name);
    ASSERT_TRUE(reader) << reader.error().message();
    for (int i = 0; i < 3; ++i) {
      const Box box = i == 0 ? Box::whole(spec.shape) : random_box(random, spec.shape);
      Bytes out(static_cast<size_t>(element_count(box.shape) * dtype_bytes(spec.dtype)));
      auto status = reader->read(box, out, scratch);
      ASSERT_TRUE(status) << status.error().message();
      ASSERT_EQ(out, box_of(spec.dtype, spec.shape, array, box)) << shape_text(box.origin) << shape_text(box.shape);
    }
  }
}

TEST(ArrayReader, ReadsFullChunksWithWhateverLiesBeyondTheEdge) {
  const ArraySpec spec = *make_array_spec(Version::kV3, DType::kUint8, {3}, {2}, Compression::kBlosc);
  MapStore store;
  store_array(spec, {std::byte{1}, std::byte{2}, std::byte{3}}, "a", store);
  auto reader = ArrayReader::open(store, "a");
  Scratch scratch;
  Bytes out(2);
  ASSERT_TRUE(reader->read_chunk(std::vector<int64_t>{1}, out, scratch));
  EXPECT_EQ(out, (Bytes{std::byte{3}, std::byte{0xEE}}));
  EXPECT_EQ(reader->read_chunk(std::vector<int64_t>{2}, out, scratch).error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(reader->chunk_store_key(std::vector<int64_t>{1}), "a/c/1");
}

TEST(ArrayReader, ReadsOnlyTheSubChunksOfAShardThatABoxTouches) {
  Random random(2);
  const ArraySpec spec = sharded_spec(1000);
  const Bytes array = random_bytes(random, 1000 * 4096);
  MapStore store;
  store_array(spec, array, "a", store);
  auto reader = ArrayReader::open(store, "a");
  store.bytes_read = 0;
  const Box box{{500, 0}, {2, 1024}};
  Bytes out(2 * 4096);
  ASSERT_TRUE(reader->read(box, out));
  EXPECT_EQ(out, box_of(spec.dtype, spec.shape, array, box));
  EXPECT_EQ(store.bytes_read, 1000 * 16 + 4 + 2 * (4096 + 4));
}

TEST(ArrayReader, ReadsOnlyTheRowsOfPlainBytesThatABoxTouches) {
  Random random(3);
  ArraySpec spec = *make_array_spec(Version::kV2, DType::kFloat32, {1000, 1024}, {1000, 1024}, Compression::kNone);
  const Bytes array = random_bytes(random, 1000 * 4096);
  MapStore store;
  store_array(spec, array, "a", store);
  auto reader = ArrayReader::open(store, "a");
  for (const Box& box : {Box{{500, 0}, {2, 1024}}, Box{{0, 3}, {1000, 16}}, Box{{10, 100}, {3, 800}}}) {
    store.bytes_read = 0;
    Bytes out(static_cast<size_t>(element_count(box.shape) * 4));
    ASSERT_TRUE(reader->read(box, out));
    EXPECT_EQ(out, box_of(spec.dtype, spec.shape, array, box));
    EXPECT_LE(store.bytes_read, 2 * out.size());
  }
}

TEST(ArrayReader, NamesArrayChunkAndPlaceOfADamagedChunk) {
  const ArraySpec spec = *make_array_spec(Version::kV3, DType::kFloat32, {4, 4}, {2, 4}, Compression::kBlosc);
  MapStore store;
  store_array(spec, Bytes(64), "params.kernel", store);
  auto reader = ArrayReader::open(store, "params.kernel");
  store.values["params.kernel/c/1/0"][3] ^= std::byte{1};
  Bytes out(64);
  auto status = reader->read(Box::whole(spec.shape), out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(status.error().message(),
              testing::MatchesRegex("array \"params.kernel\", chunk params.kernel/c/1/0 \\([0-9]+ bytes at byte 4096 of "
                                    "store/d/0\\): CRC-32C is .* the data was changed after writing"));
}

TEST(ArrayReader, RefusesAMissingChunkUnlessAskedToFillIt) {
  for (const ArraySpec& spec : {*make_array_spec(Version::kV3, DType::kInt16, {4}, {2}, Compression::kNone),
                                *make_array_spec(Version::kV2, DType::kInt16, {4}, {2}, Compression::kZstd)}) {
    MapStore store;
    store_array(spec, Bytes(8, std::byte{7}), "a", store);
    store.values.erase(spec.version == Version::kV3 ? "a/c/1" : "a/1");
    Bytes out(8);
    auto status = ArrayReader::open(store, "a")->read(Box::whole(spec.shape), out);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind(), ErrorKind::kNotFound);
    EXPECT_THAT(status.error().message(), HasSubstr("the chunk is missing"));

    std::string text = metadata_text(spec);
    if (spec.version == Version::kV3) {
      const size_t at = text.find("\"fill_value\":0");
      text.replace(at, 14, "\"fill_value\":258");
      store.values["a/zarr.json"] = copy_of(as_bytes(text));
    }
    auto reader = ArrayReader::open(store, "a", {}, {.fill_missing = true});
    ASSERT_TRUE(reader->read(Box::whole(spec.shape), out));
    Bytes expected(8, std::byte{7});
    // 258 is 0x0102; null fills with zeros.
    const bool zero = spec.version == Version::kV2;
    for (size_t i : {4, 6}) expected[i] = std::byte(zero ? 0 : 2), expected[i + 1] = std::byte(zero ? 0 : 1);
    EXPECT_EQ(out, expected);
  }
}

TEST(ArrayReader, RefusesAMissingSubChunkUnlessAskedToFillIt) {
  const ArraySpec spec = sharded_spec(2);
  MapStore store;
  store_array(spec, Bytes(2 * 4096, std::byte{1}), "a", store);
  Bytes& shard = store.values["a/c/0/0"];
  std::fill(shard.end() - 20, shard.end() - 4, std::byte{0xFF});
  store_le(crc32c(ByteSpan(shard).subspan(shard.size() - 36, 32)), &shard[shard.size() - 4]);
  Bytes out(2 * 4096);
  auto status = ArrayReader::open(store, "a")->read(Box::whole(spec.shape), out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(status.error().message(), HasSubstr("sub-chunk [1, 0] is missing"));
  ASSERT_TRUE(ArrayReader::open(store, "a", {}, {.fill_missing = true})->read(Box::whole(spec.shape), out));
  EXPECT_EQ(out[4095], std::byte{1});
  EXPECT_EQ(out[4096], std::byte{0});
}

TEST(ArrayReader, RefusesShardsWhoseIndexLies) {
  const ArraySpec spec = sharded_spec(2);
  MapStore good;
  store_array(spec, Bytes(2 * 4096), "a", good);
  struct Case {
    size_t field;
    uint64_t value;
    bool fix_crc;
    const char* text;
  };
  for (const Case& c : {Case{0, 1, false, "shard index: CRC-32C"}, Case{0, 1 << 20, true, "but the shard has"},
                        Case{1, ~uint64_t{0} - 1, true, "but the shard has"}, Case{1, 0, true, "too short for a CRC-32C"},
                        Case{1, 4099, true, "CRC-32C is"}, Case{0, ~uint64_t{0}, true, "but the shard has"}}) {
    MapStore store = good;
    Bytes& shard = store.values["a/c/0/0"];
    const size_t index = shard.size() - 36;
    store_le(c.value, &shard[index + 8 * c.field]);
    if (c.fix_crc) store_le(crc32c(ByteSpan(shard).subspan(index, 32)), &shard[index + 32]);
    Bytes out(2 * 4096);
    auto status = ArrayReader::open(store, "a")->read(Box::whole(spec.shape), out);
    ASSERT_FALSE(status) << c.text;
    EXPECT_EQ(status.error().kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(status.error().message(), HasSubstr(c.text));
  }
  MapStore store = good;
  store.values["a/c/0/0"].resize(35);
  Bytes out(2 * 4096);
  EXPECT_THAT(ArrayReader::open(store, "a")->read(Box::whole(spec.shape), out).error().message(),
              HasSubstr("too few for its index of 36 bytes"));
}

TEST(ArrayReader, SaysWhenThereIsNoSuchArray) {
  MapStore store;
  auto reader = ArrayReader::open(store, "a\nb");
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(reader.error().message(), "no zarr.json or .zarray of array \"a\\x0ab\" in the store");
}

TEST(ArrayReader, RefusesChunksThatNeedMoreMemoryThanAllowed) {
  MapStore store;
  ArraySpec spec = *make_array_spec(Version::kV2, DType::kFloat64, {1 << 20}, {1 << 20}, Compression::kZstd);
  store.values["a/.zarray"] = copy_of(as_bytes(metadata_text(spec)));
  EXPECT_EQ(ArrayReader::open(store, "a", {}, {.max_chunk_bytes = 1 << 22}).error().kind(), ErrorKind::kResourceLimit);
  EXPECT_TRUE(ArrayReader::open(store, "a", {}, {.max_chunk_bytes = 1 << 23}));
}

TEST(ArrayReader, DoesNotAllocateWhatAFewBytesClaimToHold) {
  // 2^38 bytes in a value of 20: refused from the sizes alone.
  MapStore store;
  ArraySpec spec = *make_array_spec(Version::kV2, DType::kUint8, {int64_t{1} << 38, 2}, {int64_t{1} << 37, 2},
                                    Compression::kZstd);
  store.values["a/.zarray"] = copy_of(as_bytes(metadata_text(spec)));
  store.values["a/0.0"] = Bytes(20, std::byte{0x28});
  auto reader = ArrayReader::open(store, "a", {}, {.max_chunk_bytes = uint64_t{1} << 40});
  ASSERT_TRUE(reader);
  Bytes out(1);
  auto status = reader->read({{0, 0}, {1, 1}}, out);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("20 bytes of zstd cannot hold a chunk of 274877906944 bytes"));
}

TEST(ArrayReader, RefusesBoxesBeyondTheArrayAndBuffersOfAnotherSize) {
  const ArraySpec spec = *make_array_spec(Version::kV3, DType::kInt16, {4}, {2}, Compression::kNone);
  MapStore store;
  store_array(spec, Bytes(8), "a", store);
  auto reader = ArrayReader::open(store, "a");
  Bytes out(8);
  for (const Box& box : {Box{{1}, {4}}, Box{{-1}, {4}}, Box{{}, {}}, Box{{0}, {3}}})
    EXPECT_EQ(reader->read(box, out).error().kind(), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace maxport::zarr
