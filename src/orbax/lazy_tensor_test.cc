#include "orbax/lazy_tensor.h"

#include <gtest/gtest.h>

#include "storage/memory_storage.h"
#include "zarr/chunk.h"
#include "zarr/metadata.h"

namespace maxport::orbax {
namespace {

Bytes floats(std::initializer_list<float> values) {
  Bytes out;
  for (float value : values) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

TEST(MemoryTensor, GivesAnyRegionInAnyType) {
  auto tensor = *memory_tensor(DType::kFloat32, {2, 3}, floats({0, 1, 2, 3, 4, 5.00390625f}));
  Bytes out(4);
  ASSERT_TRUE(tensor->read({{0, 2}, {2, 1}}, DType::kBfloat16, out));
  // The nearest bfloat16 of 5.00390625 is 5.
  EXPECT_EQ(hex(out), "0040a040");
  Bytes same(8);
  ASSERT_TRUE(tensor->read({{1, 0}, {1, 2}}, DType::kFloat32, same));
  EXPECT_EQ(same, floats({3, 4}));
}

TEST(MemoryTensor, RoundsHalvesToEvenOnTheWayFromFloat16ToBfloat16) {
  // 1 + 2^-8 and 1 + 3 * 2^-8 as float16: both midway between bfloat16 neighbours.
  auto tensor = *memory_tensor(DType::kFloat16, {2}, {std::byte{0x04}, std::byte{0x3C}, std::byte{0x0C}, std::byte{0x3C}});
  Bytes out(4);
  ASSERT_TRUE(tensor->read({{0}, {2}}, DType::kBfloat16, out));
  EXPECT_EQ(hex(out), "803f823f");
}

TEST(MemoryTensor, RefusesWrongSizesRegionsAndConversions) {
  EXPECT_FALSE(memory_tensor(DType::kFloat32, {2}, Bytes(7)));
  EXPECT_FALSE(memory_tensor(DType::kFloat32, {-1}, Bytes(0)));
  EXPECT_FALSE(memory_tensor(DType::kInt8, {int64_t{1} << 62, 8}, Bytes(0)));
  auto tensor = *memory_tensor(DType::kComplex64, {2}, Bytes(16));
  Bytes out(16);
  EXPECT_TRUE(tensor->read({{0}, {2}}, DType::kComplex64, out));
  EXPECT_EQ(tensor->read({{1}, {2}}, DType::kComplex64, out).error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(tensor->read({{0}, {1}}, DType::kComplex64, out).error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(tensor->read({{0}, {2}}, DType::kFloat64, out).error().kind(), ErrorKind::kInvalidArgument);
}

TEST(ArrayTensor, ConvertsRegionsLargerThanItsPieces) {
  // More elements than are converted in one go, and a shape that halving does not divide.
  const Shape shape = {3, 5, 700001};
  const zarr::ArraySpec spec =
      *zarr::make_array_spec(zarr::Version::kV3, DType::kInt8, shape, {3, 5, 100003}, zarr::Compression::kNone);
  MemoryStorage storage;
  auto writer = create_directory_store(storage, "s");
  auto segment = *writer->start_segment(0);
  ASSERT_TRUE(segment->put("a/zarr.json", as_bytes(zarr::metadata_text(spec))));
  zarr::Scratch scratch;
  Bytes chunk(static_cast<size_t>(zarr::chunk_bytes(spec)));
  for (int64_t c = 0; c < 7; ++c) {
    for (int64_t row = 0; row < 15; ++row)
      for (int64_t x = 0; x < 100003; ++x)
        chunk[static_cast<size_t>(row * 100003 + x)] = static_cast<std::byte>((row + c * 100003 + x) % 100);
    ASSERT_TRUE(segment->put(zarr::array_key("a", zarr::chunk_key(spec, std::vector<int64_t>{0, 0, c})),
                             *zarr::encode_chunk(spec, chunk, scratch)));
  }
  ASSERT_TRUE(segment->finish(false) && writer->finish(false));
  auto store = open_directory_store(storage, "s");
  const auto tensor = array_tensor(*zarr::ArrayReader::open(*store, "a"));
  std::vector<int16_t> out(static_cast<size_t>(element_count(shape)));
  auto status = tensor->read(Box::whole(shape), DType::kInt16, std::as_writable_bytes(std::span(out)));
  ASSERT_TRUE(status) << status.error().message();
  int64_t wrong = 0;
  for (int64_t i = 0; i < element_count(shape); ++i) wrong += out[static_cast<size_t>(i)] != (i / 700001 + i % 700001) % 100;
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace maxport::orbax
