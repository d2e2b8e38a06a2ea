// Codes of a block and the streams written and read by them.
#include <gtest/gtest.h>

#include <algorithm>

#include "tensor/simd_targets_for_test.h"
#include "zstd/read_streams.h"
#include "zstd/stream_code.h"
#include "zstd/testing.h"
#include "zstd/write_stream.h"

namespace maxport::zstd {
namespace {

bool has_two_values(ByteSpan in) { return std::ranges::any_of(in, [&](std::byte value) { return value != in[0]; }); }

TEST(CountSample, TellsNoiseFromExponents) {
  EXPECT_TRUE(looks_uneven(count_sample(normal_bytes(1 << 17, 24))));
  EXPECT_TRUE(looks_uneven(count_sample(normal_bytes(1 << 17, 20))));
  EXPECT_TRUE(looks_uneven(count_sample(Bytes(1 << 17))));
  for (int shift : {0, 8, 16}) EXPECT_FALSE(looks_uneven(count_sample(normal_bytes(1 << 17, shift)))) << shift;
}

TEST(CompleteCounts, CountEveryValueThatOccurs) {
  for (size_t size : {1, 100, 5000, 100'000})
    for (const Content& content : contents(size)) {
      const Counts counts = all_counts(content.bytes);
      for (std::byte value : content.bytes) ASSERT_GT(counts[static_cast<uint8_t>(value)], 0u) << content.name << " " << size;
    }
}

TEST(StreamCode, HasAWindowForWeights) {
  const StreamCode code = make_stream_code(all_counts(normal_bytes(1 << 17, 24)));
  ASSERT_TRUE(code.has_window);
  int longest = 0;
  for (size_t i = 0; i < 16; ++i) {
    const size_t value = code.window_begin + i % 8 + i / 8 * 128;
    EXPECT_EQ(code.bits[i], code.huffman.bits[value]);
    EXPECT_EQ(code.codes[i], code.huffman.codes[value]);
    EXPECT_EQ(code.powers[i], 1u << code.bits[i]);
    longest = std::max<int>(longest, code.bits[i]);
  }
  EXPECT_LE(longest, kWindowBits);
  EXPECT_GT(code.huffman.longest, kWindowBits) << "values outside have longer codes";
  EXPECT_FALSE(make_stream_code(all_counts(normal_bytes(1 << 17, 20))).has_window) << "float16 has more values";
}

TEST(MagnitudeRange, IsThatOfTheLowerSevenBits) {
  std::mt19937 random(1);
  for_each_simd_target([&] {
    for (size_t size : {1, 2, 15, 16, 17, 31, 32, 33, 64, 1000})
      for (int i = 0; i < 50; ++i) {
        Bytes in(size);
        const unsigned low = random() % 128, span = 1 + random() % (128 - low);
        for (std::byte& byte : in) byte = static_cast<std::byte>((low + random() % span) | (random() & 128));
        uint8_t lowest = 127, highest = 0;
        for (std::byte byte : in) {
          lowest = std::min<uint8_t>(lowest, static_cast<uint8_t>(byte) & 127);
          highest = std::max<uint8_t>(highest, static_cast<uint8_t>(byte) & 127);
        }
        const MagnitudeRange range = magnitude_range(in);
        ASSERT_EQ(range.lowest, lowest) << size;
        ASSERT_EQ(range.highest, highest) << size;
      }
  });
}

/// Four streams of the same content, and where they decode to.
struct Written {
  std::array<Bytes, 4> in, out;
  std::array<Stream, 4> streams;
  ReadTable table;

  Written(ByteSpan content, const StreamCode& code) {
    fill_read_table(code.huffman, table);
    for (size_t i = 0; i < 4; ++i) {
      in[i].resize(content.size() * 2 + 16);
      in[i].resize(static_cast<size_t>(write_stream(content, code, in[i].data()) - in[i].data()));
      out[i].resize(content.size());
      streams[i] = {in[i], out[i]};
    }
  }
};

TEST(Streams, AreReadAsTheyWereWritten) {
  for_each_simd_target([&] {
    for (size_t size : {1, 2, 3, 7, 8, 31, 32, 33, 100, 1000, 4097, 40'000})
      for (const Content& content : contents(size)) {
        if (!has_two_values(content.bytes)) continue;
        Written written(content.bytes, make_stream_code(all_counts(content.bytes)));
        ASSERT_TRUE(read_streams(written.streams, written.table)) << content.name << " " << size;
        for (const Bytes& out : written.out) ASSERT_EQ(out, content.bytes) << content.name << " " << size;
      }
  });
}

TEST(Streams, MustEndWithTheirOutput) {
  const Bytes content = normal_bytes(5000, 24);
  const StreamCode code = make_stream_code(all_counts(content));
  for (size_t stream = 0; stream < 4; ++stream) {
    Written written(content, code);
    written.out[stream].resize(4999);
    written.streams[stream].out = written.out[stream];
    EXPECT_FALSE(read_streams(written.streams, written.table)) << "bits are left";
    written.out[stream].resize(5001);
    written.streams[stream].out = written.out[stream];
    EXPECT_FALSE(read_streams(written.streams, written.table)) << "bits are missing";
    Written unmarked(content, code);
    unmarked.in[stream].back() = std::byte{0};
    EXPECT_FALSE(read_streams(unmarked.streams, unmarked.table)) << "no mark";
    unmarked.streams[stream].in = {};
    EXPECT_FALSE(read_streams(unmarked.streams, unmarked.table)) << "nothing at all";
  }
}

}  // namespace
}  // namespace maxport::zstd
