#include "engine/rechunked.h"

#include <gtest/gtest.h>

#include <random>

#include "storage/key_value_store.h"
#include "storage/memory_storage.h"
#include "zarr/chunk.h"
#include "zarr/grid.h"
#include "zarr/metadata.h"

namespace maxport::engine {
namespace {

using zarr::ArraySpec;

/// An array of random numbers in a store of its own.
class StoredArray {
 public:
  StoredArray(Shape shape, Shape chunk, zarr::Compression compression, zarr::Version version)
      : spec_(*zarr::make_array_spec(version, DType::kBfloat16, std::move(shape), std::move(chunk), compression)) {
    std::mt19937 random(1);
    values_.resize(static_cast<size_t>(2 * element_count(spec_.shape)));
    for (std::byte& byte : values_) byte = static_cast<std::byte>(random());
    write();
    reader_.emplace(*zarr::ArrayReader::open(*store_, "a", version));
  }
  const zarr::ArrayReader& reader() const { return *reader_; }
  ByteSpan values() const { return values_; }
  Bytes box(const Box& box) const {
    Bytes out(static_cast<size_t>(2 * element_count(box.shape)));
    EXPECT_TRUE(reader_->read(box, out));
    return out;
  }

 private:
  void write() {
    auto writer = create_directory_store(storage_, "/store");
    auto segment = *writer->start_segment(0);
    zarr::Scratch scratch;
    EXPECT_TRUE(segment->put(zarr::array_key("a", zarr::metadata_key(spec_.version)), as_bytes(zarr::metadata_text(spec_))));
    zarr::for_each_position(zarr::grid_shape(spec_), [&](std::span<const int64_t> position) {
      const Box box = zarr::chunk_box(spec_, position);
      Bytes raw(static_cast<size_t>(zarr::chunk_bytes(spec_)));
      int64_t from = 0, at = 0;
      const auto array = row_major_strides(spec_.shape), chunk = row_major_strides(spec_.chunk_shape);
      zarr::for_each_position(Box::whole(box.shape), [&](std::span<const int64_t> i) {
        from = at = 0;
        for (size_t axis = 0; axis < i.size(); ++axis) {
          from += (box.origin[axis] + i[axis]) * array[axis];
          at += i[axis] * chunk[axis];
        }
        std::copy_n(values_.data() + 2 * from, 2, raw.data() + 2 * at);
        return true;
      });
      EXPECT_TRUE(segment->put("a/" + zarr::chunk_key(spec_, position), *zarr::encode_chunk(spec_, raw, scratch)));
      return true;
    });
    EXPECT_TRUE(segment->finish(false));
    EXPECT_TRUE(writer->finish(false));
    store_ = open_directory_store(storage_, "/store");
  }

  ArraySpec spec_;
  Bytes values_;
  MemoryStorage storage_;
  std::unique_ptr<KeyValueReader> store_;
  std::optional<zarr::ArrayReader> reader_;
};

struct Case {
  Shape shape, chunk, tile;
  zarr::Compression compression = zarr::Compression::kZstd;
  zarr::Version version = zarr::Version::kV3;
};

class RechunkedArray : public testing::TestWithParam<Case> {};

TEST_P(RechunkedArray, ReadsAsTheArrayItself) {
  const Case& c = GetParam();
  const StoredArray array(c.shape, c.chunk, c.compression, c.version);
  Rechunked subject(array.reader(), c.tile);
  MemoryStorage storage;
  const Result<> made = subject.make(storage, "/tiles", 2, {});
  ASSERT_TRUE(made) << made.error().message();
  zarr::Scratch scratch;
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    Box box = Box::whole(c.shape);
    for (size_t axis = 0; i > 0 && axis < box.shape.size(); ++axis) {
      box.origin[axis] = static_cast<int64_t>(random() % static_cast<unsigned>(c.shape[axis]));
      box.shape[axis] = 1 + static_cast<int64_t>(random() % static_cast<unsigned>(c.shape[axis] - box.origin[axis]));
    }
    Bytes out(static_cast<size_t>(2 * element_count(box.shape)));
    ASSERT_TRUE(subject.read(box, out, scratch));
    ASSERT_EQ(out, array.box(box)) << shape_text(box.origin) << " " << shape_text(box.shape);
  }
  ASSERT_TRUE(subject.drop(storage));
  EXPECT_FALSE(*storage.kind("/tiles"));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RechunkedArray,
    testing::Values(Case{{64, 6, 50}, {16, 6, 50}, {16, 1, 20}}, Case{{64, 6, 50}, {16, 6, 50}, {64, 1, 7}},
                    Case{{60, 5, 50}, {16, 5, 13}, {7, 2, 20}}, Case{{3000, 4, 512}, {1500, 4, 512}, {100, 1, 512}},
                    Case{{100}, {30}, {7}}, Case{{64, 6, 50}, {16, 6, 50}, {16, 1, 20}, zarr::Compression::kBlosc},
                    Case{{60, 6, 50}, {16, 6, 50}, {16, 1, 20}, zarr::Compression::kNone, zarr::Version::kV2},
                    Case{{60, 6, 50}, {16, 6, 50}, {16, 1, 20}, zarr::Compression::kNone}));

TEST(Rechunked, SaysHowMuchDiskAndMemoryItTakes) {
  const StoredArray array({64, 6, 50}, {16, 6, 50}, zarr::Compression::kZstd, zarr::Version::kV3);
  const Rechunked subject(array.reader(), {16, 1, 20});
  EXPECT_EQ(subject.bytes(), 2u * 64 * 6 * 60);
  EXPECT_LT(subject.thread_bytes(), uint64_t{5} << 20);
}

TEST(Rechunked, StopsWhenAsked) {
  const StoredArray array({64, 6, 50}, {16, 6, 50}, zarr::Compression::kZstd, zarr::Version::kV3);
  Rechunked subject(array.reader(), {16, 1, 20});
  MemoryStorage storage;
  const auto status = subject.make(storage, "/tiles", 2, [] { return true; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), ErrorKind::kInterrupted);
}

}  // namespace
}  // namespace maxport::engine
