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

Bytes encoded(FrameKind kind, ByteSpan in, size_t element) {
  Scratch scratch;
  Bytes out(blosc_frame_bound(in.size(), element));
  out.resize(encode_blosc_frame(kind, in, element, scratch, out));
  return out;
}

struct LibraryCase {
  const char* compressor;
  int shuffle;
};

Bytes of_library(const LibraryCase& with, ByteSpan in, size_t element, size_t block) {
  Bytes out(in.size() + BLOSC_MAX_OVERHEAD);
  const int size = blosc_compress_ctx(5, with.shuffle, element, in.size(), in.data(), out.data(), out.size(), with.compressor, block, 1);
  EXPECT_GT(size, 0);
  out.resize(static_cast<size_t>(size));
  return out;
}

class BloscFrame : public testing::TestWithParam<std::tuple<FrameKind, Kind, size_t>> {
 protected:
  const FrameKind frame_ = std::get<0>(GetParam());
  const size_t element_ = std::get<2>(GetParam());
  Bytes make(size_t elements) const { return content(std::get<1>(GetParam()), elements * element_, element_); }
  // Around block borders, one block and less, and many; where any number of elements is taken, also odd ones.
  std::vector<size_t> elements() const {
    std::vector<size_t> out{8, 48, 128, 1000, (64 << 10) / element_, (64 << 10) / element_ + 8, (256 << 10) / element_,
                            (256 << 10) / element_ + 8, 100'000, 1'000'000};
    if (frame_ == FrameKind::kHuffman) out.insert(out.end(), {1, 127, 129, 2047, (256 << 10) / element_ + 1, (512 << 10) / element_ - 3});
    return out;
  }
};

TEST_P(BloscFrame, OfOursIsReadByTheLibraryAndByUs) {
  Scratch scratch;
  for (size_t elements : elements()) {
    const Bytes in = make(elements);
    ASSERT_TRUE(can_encode_blosc_frame(frame_, in.size(), element_));
    const Bytes frame = encoded(frame_, in, element_);
    ASSERT_LE(frame.size(), in.size() + 16) << elements;
    size_t stated = 0;
    ASSERT_EQ(blosc_cbuffer_validate(frame.data(), frame.size(), &stated), 0) << elements;
    ASSERT_EQ(stated, in.size());
    Bytes back(in.size()), ours(in.size());
    ASSERT_EQ(blosc_decompress_ctx(frame.data(), back.data(), back.size(), 1), static_cast<int>(in.size())) << elements;
    ASSERT_EQ(back, in) << elements;
    const auto done = decode_blosc_frame(frame, ours, scratch);
    ASSERT_TRUE(done) << done.error().message();
    ASSERT_EQ(*done, (static_cast<uint8_t>(frame[2]) & 2) == 0) << "only a plain copy is left to the library";
    if (*done) {
      ASSERT_EQ(ours, in) << elements;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lz4, BloscFrame,
                         testing::Combine(testing::Values(FrameKind::kLz4), testing::Values(Kind::kWeights, Kind::kNoise, Kind::kZeros),
                                          testing::Values(2, 4)));
INSTANTIATE_TEST_SUITE_P(Huffman, BloscFrame,
                         testing::Combine(testing::Values(FrameKind::kHuffman), testing::Values(Kind::kWeights, Kind::kNoise, Kind::kZeros),
                                          testing::Values(1, 2, 4, 8)));

class LibraryFrame : public testing::TestWithParam<LibraryCase> {};

TEST_P(LibraryFrame, IsReadByUs) {
  Scratch scratch;
  for (size_t element : {1, 2, 4, 8})
    for (Kind kind : {Kind::kWeights, Kind::kNoise, Kind::kZeros})
      for (size_t elements : {8, 1000, 64 << 10, (64 << 10) + 8, 300'000})
        for (size_t block : {0, 1024, 64 << 10, 1 << 20}) {
          const Bytes in = content(kind, elements * element, element), frame = of_library(GetParam(), in, element, block);
          Bytes back(in.size());
          const auto done = decode_blosc_frame(frame, back, scratch);
          ASSERT_TRUE(done) << done.error().message();
          const bool plain = (static_cast<uint8_t>(frame[2]) & 2) != 0;
          const bool bits_of_others = GetParam().shuffle == BLOSC_BITSHUFFLE && element != 2 && element != 4;
          ASSERT_EQ(*done, !plain && !bits_of_others) << elements << " elements of " << element << " in blocks of " << block;
          if (*done) {
            ASSERT_EQ(back, in) << elements << " elements of " << element << " in blocks of " << block;
          }
        }
}

INSTANTIATE_TEST_SUITE_P(Of, LibraryFrame,
                         testing::Values(LibraryCase{"lz4", BLOSC_BITSHUFFLE}, LibraryCase{"lz4", BLOSC_SHUFFLE}, LibraryCase{"lz4", BLOSC_NOSHUFFLE},
                                         LibraryCase{"zstd", BLOSC_BITSHUFFLE}, LibraryCase{"zstd", BLOSC_SHUFFLE},
                                         LibraryCase{"zstd", BLOSC_NOSHUFFLE}));

TEST(BloscFrame, OfOddInputIsLeftToTheLibrary) {
  EXPECT_FALSE(can_encode_blosc_frame(FrameKind::kHuffman, 0, 2));
  EXPECT_FALSE(can_encode_blosc_frame(FrameKind::kHuffman, 7, 2));
  EXPECT_FALSE(can_encode_blosc_frame(FrameKind::kHuffman, 12, 3));
  EXPECT_FALSE(can_encode_blosc_frame(FrameKind::kHuffman, size_t{1} << 31, 2));
  EXPECT_FALSE(can_encode_blosc_frame(FrameKind::kLz4, 12, 2));
  EXPECT_FALSE(can_encode_blosc_frame(FrameKind::kLz4, 64, 1));
}

class BloscFrameSize : public testing::TestWithParam<FrameKind> {};

TEST_P(BloscFrameSize, IsSmallerForWeightsAndNotLargerForNoise) {
  const Bytes weights = content(Kind::kWeights, 1 << 20, 2), noise = content(Kind::kNoise, 1 << 20, 2);
  EXPECT_LT(encoded(GetParam(), weights, 2).size(), weights.size() * 2 / 3);
  EXPECT_EQ(encoded(GetParam(), noise, 2).size(), noise.size() + 16);
}

class DamagedBloscFrame : public testing::TestWithParam<FrameKind> {};

TEST_P(DamagedBloscFrame, NeverReadsOrWritesOutside) {
  Scratch scratch;
  const Bytes in = content(Kind::kWeights, 600'000, 2), frame = encoded(GetParam(), in, 2);
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

TEST_P(DamagedBloscFrame, IsNamed) {
  Scratch scratch;
  const Bytes in = content(Kind::kWeights, 600'000, 2);
  Bytes frame = encoded(GetParam(), in, 2), back(in.size());
  store_le(uint32_t{0xfffffff0}, frame.data() + 16);
  const auto done = decode_blosc_frame(frame, back, scratch);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::kCorruptData);
  EXPECT_TRUE(done.error().message().contains("begins at byte 4294967280")) << done.error().message();
}

INSTANTIATE_TEST_SUITE_P(Kinds, BloscFrameSize, testing::Values(FrameKind::kHuffman, FrameKind::kLz4));
INSTANTIATE_TEST_SUITE_P(Kinds, DamagedBloscFrame, testing::Values(FrameKind::kHuffman, FrameKind::kLz4));

TEST(DamagedBloscFrame, WithDamagedCodesIsNamed) {
  Scratch scratch;
  const Bytes in = content(Kind::kWeights, 1 << 20, 2);
  Bytes frame = encoded(FrameKind::kHuffman, in, 2), back(in.size());
  // The first block: a plain plane of 128 KiB and its size, then a size and the magic number of Zstandard.
  const size_t at = load_le<uint32_t>(frame.data() + 16) + 4 + (128 << 10) + 4;
  ASSERT_EQ(load_le<uint32_t>(frame.data() + at), 0xFD2FB528);
  frame[at + 12] ^= std::byte{0xff};
  const auto done = decode_blosc_frame(frame, back, scratch);
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().message().contains("zstd: ")) << done.error().message();
}

}  // namespace
}  // namespace maxport::zarr
