// The judge is the Zstandard library: it decodes what is written here, and what it writes is decoded here or left to it.
#include "zstd/literals_frame.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <cmath>

#include "tensor/simd_targets_for_test.h"
#include "zstd/literals_tables.h"
#include "zstd/testing.h"
#include "zstd/write_stream.h"

namespace maxport::zstd {
namespace {

constexpr size_t kKib = 1024;

Bytes encoded(ByteSpan in, size_t block_bytes, LiteralsWorkspace& workspace) {
  Bytes out(literals_frame_bound(in.size(), block_bytes) + 1, std::byte{0xEE});
  const size_t size = encode_literals_frame(in, block_bytes, workspace, MutableByteSpan(out).first(out.size() - 1));
  EXPECT_EQ(out.back(), std::byte{0xEE}) << "written beyond the bound";
  EXPECT_LT(size, out.size());
  out.resize(size);
  return out;
}

Bytes decoded_by_library(ByteSpan frame, size_t bytes) {
  Bytes out(bytes + 1);
  const size_t size = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
  EXPECT_FALSE(ZSTD_isError(size)) << ZSTD_getErrorName(size);
  out.resize(ZSTD_isError(size) ? 0 : size);
  return out;
}

class LiteralsFrame : public testing::TestWithParam<size_t> {};

TEST_P(LiteralsFrame, IsReadByTheLibraryAndByUs) {
  LiteralsWorkspace workspace;
  for (const Content& content : contents(GetParam()))
    for (size_t block : {size_t{1} << 20, 64 * kKib, size_t{1000}}) {
      const Bytes frame = encoded(content.bytes, block, workspace);
      ASSERT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()), content.bytes.size());
      ASSERT_EQ(ZSTD_findFrameCompressedSize(frame.data(), frame.size()), frame.size());
      ASSERT_EQ(decoded_by_library(frame, content.bytes.size()), content.bytes) << content.name << " in blocks of " << block;
      Bytes back(content.bytes.size());
      ASSERT_TRUE(decode_literals_frame(frame, workspace, back)) << content.name << " in blocks of " << block;
      ASSERT_EQ(back, content.bytes) << content.name << " in blocks of " << block;
    }
}

TEST_P(LiteralsFrame, OfTheLibraryIsReadRightlyOrLeftToIt) {
  LiteralsWorkspace workspace;
  for (const Content& content : contents(GetParam()))
    for (int level : {-1000, -5, 1, 19}) {
      Bytes frame(ZSTD_compressBound(content.bytes.size()));
      frame.resize(ZSTD_compress(frame.data(), frame.size(), content.bytes.data(), content.bytes.size(), level));
      Bytes back(content.bytes.size());
      if (decode_literals_frame(frame, workspace, back)) {
        ASSERT_EQ(back, content.bytes) << content.name << " at level " << level;
      }
    }
}

TEST_P(LiteralsFrame, DependsOnNothingBeforeForget) {
  LiteralsWorkspace fresh, used;
  for (const Content& content : contents(GetParam())) {
    used.forget();
    LiteralsWorkspace other;
    ASSERT_EQ(encoded(content.bytes, 32 * kKib, used), encoded(content.bytes, 32 * kKib, other)) << content.name;
  }
}

TEST_P(LiteralsFrame, IsTheSameOnEveryProcessor) {
  for (const Content& content : contents(GetParam())) {
    Bytes first;
    for_each_simd_target([&] {
      LiteralsWorkspace workspace;
      const Bytes frame = encoded(content.bytes, 64 * kKib, workspace);
      if (first.empty()) first = frame;
      ASSERT_EQ(frame, first) << content.name;
      Bytes back(content.bytes.size());
      ASSERT_TRUE(decode_literals_frame(frame, workspace, back)) << content.name;
      ASSERT_EQ(back, content.bytes) << content.name;
    });
  }
}

// Nothing, less than a code is worth, odd, around blocks and stretches of samples, several blocks.
INSTANTIATE_TEST_SUITE_P(Sizes, LiteralsFrame,
                         testing::Values(0, 1, 2, 255, 256, 257, 1000, 4095, 4096, 4097, 10'001, 64 * kKib - 1, 64 * kKib + 1,
                                         128 * kKib, 128 * kKib + 5, 300'000));

TEST(LiteralsFrameSize, IsNearTheEntropyForExponents) {
  LiteralsWorkspace workspace;
  const Bytes in = normal_bytes(128 * kKib, 24);
  std::array<double, 256> counts = {};
  for (std::byte byte : in) ++counts[static_cast<uint8_t>(byte)];
  double bits = 0;
  for (double count : counts) bits -= count > 0 ? count * std::log2(count / static_cast<double>(in.size())) : 0;
  EXPECT_LT(static_cast<double>(encoded(in, in.size(), workspace).size()), bits / 8 * 1.035);
}

TEST(LiteralsFrameSize, GrowsByHeadersOnlyForNoise) {
  LiteralsWorkspace workspace;
  const Bytes in = normal_bytes(128 * kKib, 0);
  EXPECT_EQ(encoded(in, in.size(), workspace).size(), in.size() + 12);
  EXPECT_EQ(encoded(Bytes(128 * kKib), 128 * kKib, workspace).size(), 13u) << "a run";
}

TEST(LiteralsFrameSize, KeepsACodeThatSuits) {
  LiteralsWorkspace workspace;
  const Bytes a = normal_bytes(64 * kKib, 24, 1), b = normal_bytes(64 * kKib, 24, 2), other = drawn_bytes(64 * kKib, {1, 1, 2, 3});
  const auto description = [&](ByteSpan in) {
    const Bytes frame = encoded(in, in.size(), workspace);
    // After headers of frame, block and literals: its first byte is its size.
    const auto begin = frame.begin() + 9 + 3 + 5;
    return Bytes(begin, begin + 1 + static_cast<uint8_t>(*begin));
  };
  const Bytes first = description(a);
  EXPECT_EQ(description(b), first);
  EXPECT_NE(description(other), first);
}

TEST(DamagedLiteralsFrame, IsNeverTakenForOtherContentThanTheLibraryReads) {
  LiteralsWorkspace workspace;
  std::mt19937 random(6);
  int taken = 0;
  for (const Content& content : contents(5000)) {
    const Bytes frame = encoded(content.bytes, 2000, workspace);
    Bytes back(content.bytes.size());
    for (int i = 0; i < 2000; ++i) {
      Bytes damaged = frame;
      const size_t at = i % 2 ? random() % std::min<size_t>(100, damaged.size()) : random() % damaged.size();
      damaged[at] ^= static_cast<std::byte>(1u << random() % 8);
      if (i % 7 == 0) damaged.resize(random() % damaged.size());
      if (!decode_literals_frame(damaged, workspace, back)) continue;
      ++taken;
      ASSERT_EQ(back, decoded_by_library(damaged, back.size())) << content.name;
    }
  }
  EXPECT_GT(taken, 100) << "flips in plain bytes and codes of equal length decode";
}

TEST(DamagedLiteralsFrame, OfAnotherSizeIsRefused) {
  LiteralsWorkspace workspace;
  const Bytes in = normal_bytes(5000, 24), frame = encoded(in, in.size(), workspace);
  for (size_t size : {0, 4999, 5001}) {
    Bytes back(size);
    EXPECT_FALSE(decode_literals_frame(frame, workspace, back)) << size;
  }
  for (size_t size = 0; size < frame.size(); ++size) {
    Bytes back(in.size());
    ASSERT_FALSE(decode_literals_frame(ByteSpan(frame).first(size), workspace, back)) << "cut to " << size;
  }
}

/// A frame of one block, of any kind and size.
Bytes frame_of(BlockKind kind, size_t block_bytes, size_t bytes, const Bytes& content) {
  Bytes out(kFrameHeaderBytes + kBlockHeaderBytes + content.size());
  store_le(kMagic, out.data());
  out[4] = static_cast<std::byte>(kDescriptor);
  store_le(static_cast<uint32_t>(bytes), out.data() + 5);
  const uint64_t header = 1 | static_cast<uint64_t>(kind) << 1 | block_bytes << 3;
  for (size_t i = 0; i < kBlockHeaderBytes; ++i) out[kFrameHeaderBytes + i] = static_cast<std::byte>(header >> (8 * i));
  std::ranges::copy(content, out.end() - static_cast<std::ptrdiff_t>(content.size()));
  return out;
}

/// The content of a compressed block for all of `in`, as large as it may be.
Bytes compressed_block(const Bytes& in) {
  const StreamCode code = make_stream_code(all_counts(in));
  Bytes description(kMaxDescriptionBytes), streams;
  description.resize(write_code_description(code.huffman, description));
  std::array<uint64_t, 4> sizes;
  for (size_t i = 0, offset = 0; i < 4; offset += stream_bytes(in.size(), i++)) {
    const size_t count = stream_bytes(in.size(), i);
    Bytes stream(count * 2 + 16);
    stream.resize(static_cast<size_t>(write_stream(ByteSpan(in).subspan(offset, count), code, stream.data()) - stream.data()));
    streams.insert(streams.end(), stream.begin(), stream.end());
    sizes[i] = stream.size();
  }
  const uint64_t coded = description.size() + kJumpBytes + streams.size();
  Bytes out;
  const auto put = [&](uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  put(kFourStreams | uint64_t{in.size()} << 4 | coded << 22, kLiteralsHeaderBytes);
  out.insert(out.end(), description.begin(), description.end());
  for (size_t i = 0; i < 3; ++i) put(sizes[i], 2);
  out.insert(out.end(), streams.begin(), streams.end());
  out.push_back(std::byte{0});
  return out;
}

// A block holds 128 KiB at most. What to say of larger ones is left to the library, which takes some of them.
TEST(BlockSize, IsBounded) {
  LiteralsWorkspace workspace;
  for (size_t excess : {0, 1}) {
    const size_t bytes = kMaxBlockBytes + excess;
    Bytes in = normal_bytes(bytes, 24);
    const Bytes content = compressed_block(in);
    for (const Bytes& frame : {frame_of(BlockKind::kPlain, bytes, bytes, in), frame_of(BlockKind::kRun, bytes, bytes, Bytes(1)),
                               frame_of(BlockKind::kCompressed, content.size(), bytes, content)}) {
      Bytes ours(bytes), theirs(bytes);
      EXPECT_EQ(decode_literals_frame(frame, workspace, ours), excess == 0);
      if (excess > 0) continue;
      EXPECT_EQ(ZSTD_decompress(theirs.data(), theirs.size(), frame.data(), frame.size()), bytes);
      EXPECT_EQ(ours, theirs);
    }
  }
}

}  // namespace
}  // namespace maxport::zstd
