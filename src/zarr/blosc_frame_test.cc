// The judge is the blosc library: it decodes what is written here, and what it writes is decoded here.
#include "zarr/blosc_frame.h"

#include <blosc.h>
#include <gtest/gtest.h>

#include <random>

namespace maxport::zarr {
namespace {

/// Numbers near 0.02 in their upper bytes and random ones below, like weights; or all random; or all alike.
enum class Kind { kWeights, kNoise, kZeros };

Bytes content(Kind kind, size_t count, size_t element) {
  std::mt19937 random(static_cast<unsigned>(count));
  Bytes out(count, std::byte{0});
  for (size_t i = 0; i < count && kind != Kind::kZeros; ++i) {
    const bool upper = i % element == element - 1;
    out[i] = static_cast<std::byte>(kind == Kind::kWeights && upper ? 0x3c + random() % 2 : random());
  }
  return out;
}

Bytes encoded(ByteSpan in, size_t element) {
  Scratch scratch;
  Bytes out(blosc_frame_bound(in.size(), element));
  out.resize(encode_blosc_frame(in, element, 9, scratch, out));
  return out;
}

Bytes of_library(ByteSpan in, size_t element, size_t block) {
  Bytes out(in.size() + BLOSC_MAX_OVERHEAD);
  const int size = blosc_compress_ctx(5, BLOSC_BITSHUFFLE, element, in.size(), in.data(), out.data(), out.size(), "lz4", block, 1);
  EXPECT_GT(size, 0);
  out.resize(static_cast<size_t>(size));
  return out;
}

class BloscFrame : public testing::TestWithParam<std::tuple<Kind, size_t>> {
 protected:
  const size_t element_ = std::get<1>(GetParam());
  Bytes make(size_t elements) const { return content(std::get<0>(GetParam()), elements * element_, element_); }
  // Around block borders, one block and less, and many.
  const std::vector<size_t> elements_{8, 48, 1000, (64 << 10) / element_, (64 << 10) / element_ + 8, 100'000, 1'000'000};
};

TEST_P(BloscFrame, OfOursIsReadByTheLibrary) {
  for (size_t elements : elements_) {
    const Bytes in = make(elements), frame = encoded(in, element_);
    ASSERT_LE(frame.size(), in.size() + 16) << elements;
    size_t stated = 0;
    ASSERT_EQ(blosc_cbuffer_validate(frame.data(), frame.size(), &stated), 0) << elements;
    ASSERT_EQ(stated, in.size());
    Bytes back(in.size());
    ASSERT_EQ(blosc_decompress_ctx(frame.data(), back.data(), back.size(), 1), static_cast<int>(in.size())) << elements;
    ASSERT_EQ(back, in) << elements;
  }
}

TEST_P(BloscFrame, OfTheLibraryIsReadByUs) {
  Scratch scratch;
  for (size_t elements : elements_)
    for (size_t block : {0, 1024, 64 << 10, 1 << 20}) {
      const Bytes in = make(elements), frame = of_library(in, element_, block);
      Bytes back(in.size());
      const auto done = decode_blosc_frame(frame, back, scratch);
      ASSERT_TRUE(done) << done.error().message();
      if (*done) {
        ASSERT_EQ(back, in) << elements << " elements in blocks of " << block;
      } else {
        ASSERT_TRUE((static_cast<uint8_t>(frame[2]) & 2) != 0) << "only a plain copy is left to the library";
      }
    }
}

TEST_P(BloscFrame, OfOursIsReadByUs) {
  Scratch scratch;
  for (size_t elements : elements_) {
    const Bytes in = make(elements), frame = encoded(in, element_);
    Bytes back(in.size());
    const auto done = decode_blosc_frame(frame, back, scratch);
    ASSERT_TRUE(done);
    if (*done) {
      ASSERT_EQ(back, in);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Content, BloscFrame,
                         testing::Combine(testing::Values(Kind::kWeights, Kind::kNoise, Kind::kZeros), testing::Values(2, 4)));

TEST(BloscFrameSize, WeightsBecomeSmallerNoiseDoesNotGrow) {
  const Bytes weights = content(Kind::kWeights, 1 << 20, 2), noise = content(Kind::kNoise, 1 << 20, 2);
  EXPECT_LT(encoded(weights, 2).size(), weights.size() * 2 / 3);
  EXPECT_EQ(encoded(noise, 2).size(), noise.size() + 16);
}

TEST(DamagedBloscFrame, NeverReadsOrWritesOutside) {
  Scratch scratch;
  const Bytes in = content(Kind::kWeights, 200'000, 2), frame = encoded(in, 2);
  std::mt19937 random(5);
  Bytes back(in.size());
  for (int i = 0; i < 3000; ++i) {
    Bytes damaged = frame;
    // The header and the table of blocks in most cases; they steer.
    const size_t at = i % 3 ? random() % 64 : random() % damaged.size();
    damaged[at] ^= static_cast<std::byte>(1u << random() % 8);
    if (i % 5 == 0) damaged.resize(random() % damaged.size());
    (void)decode_blosc_frame(damaged, back, scratch);
  }
}

TEST(DamagedBloscFrame, IsNamed) {
  Scratch scratch;
  const Bytes in = content(Kind::kWeights, 200'000, 2);
  Bytes frame = encoded(in, 2), back(in.size());
  store_le(uint32_t{0xfffffff0}, frame.data() + 16);
  const auto done = decode_blosc_frame(frame, back, scratch);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::kCorruptData);
  EXPECT_TRUE(done.error().message().contains("begins at byte 4294967280")) << done.error().message();
}

}  // namespace
}  // namespace maxport::zarr
