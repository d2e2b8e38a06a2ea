#include "zarr/chunk.h"

#include <gmock/gmock.h>
#include <zstd.h>

#include "zarr/testing.h"

namespace maxport::zarr {
namespace {

using testing::HasSubstr;

/// Every chain that maxport writes and that has a checksum.
std::vector<ArraySpec> checked_specs(const Shape& shape) {
  return {*make_array_spec(Version::kV3, DType::kBfloat16, shape, shape, Compression::kBlosc),
          *make_array_spec(Version::kV3, DType::kBfloat16, shape, shape, Compression::kZstd),
          *make_array_spec(Version::kV3, DType::kBfloat16, shape, shape, Compression::kNone),
          *make_array_spec(Version::kV2, DType::kBfloat16, shape, shape, Compression::kZstd)};
}

Bytes encoded_with(const ArraySpec& spec, const Bytes& raw) {
  Scratch scratch;
  auto encoded = encode_chunk(spec, raw, scratch);
  EXPECT_TRUE(encoded) << encoded.error().message();
  return copy_of(*encoded);
}

Result<> decoded(const ArraySpec& spec, const Bytes& encoded) {
  Scratch scratch;
  Bytes raw(static_cast<size_t>(chunk_bytes(spec)));
  return decode_chunk(spec, encoded, raw, scratch);
}

TEST(Chunk, IsRefusedWhicheverBitIsFlipped) {
  Random random(1);
  for (const ArraySpec& spec : checked_specs({40, 5})) {
    const Bytes raw = random_bytes(random, chunk_bytes(spec));
    Bytes encoded = encoded_with(spec, raw);
    ASSERT_TRUE(decoded(spec, encoded));
    Scratch scratch;
    Bytes out(raw.size());
    for (size_t bit = 0; bit < encoded.size() * 8; ++bit) {
      encoded[bit / 8] ^= std::byte(1 << bit % 8);
      auto status = decode_chunk(spec, encoded, out, scratch);
      // A flip may touch bits of a frame header that mean nothing; then the values must be right.
      if (status) {
        EXPECT_EQ(out, raw) << metadata_text(spec) << " bit " << bit;
      } else {
        EXPECT_EQ(status.error().kind(), ErrorKind::kCorruptData);
      }
      encoded[bit / 8] ^= std::byte(1 << bit % 8);
    }
  }
}

TEST(Chunk, IsRefusedWhereverItIsCutOrContinued) {
  Random random(2);
  for (const ArraySpec& spec : checked_specs({40, 5})) {
    const Bytes encoded = encoded_with(spec, random_bytes(random, chunk_bytes(spec)));
    for (size_t size = 0; size < encoded.size(); ++size)
      EXPECT_FALSE(decoded(spec, Bytes(encoded.begin(), encoded.begin() + static_cast<ptrdiff_t>(size))));
    Bytes longer = encoded;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decoded(spec, longer));
  }
}

TEST(Chunk, DependsOnSpecAndValuesOnly) {
  Random random(3);
  Scratch used;
  for (const ArraySpec& spec : checked_specs({512, 300})) {
    const Bytes raw = random_bytes(random, chunk_bytes(spec));
    const Bytes first = encoded_with(spec, raw);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(copy_of(*encode_chunk(spec, raw, used)), first);
  }
}

TEST(Chunk, OfOneZstdFrameIsAcceptedAndOfAnythingElseRefused) {
  const ArraySpec spec = *make_array_spec(Version::kV2, DType::kUint8, {64}, {64}, Compression::kZstd);
  const Bytes raw(64, std::byte{7});
  const Bytes frame = encoded_with(spec, raw);
  // Magic of a skippable frame with 4 bytes of content.
  const Bytes skippable = {std::byte{0x50}, std::byte{0x2A}, std::byte{0x4D}, std::byte{0x18}, std::byte{4}, std::byte{0},
                           std::byte{0},    std::byte{0},    std::byte{1},    std::byte{2},    std::byte{3}, std::byte{4}};
  auto joined = [](Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  EXPECT_TRUE(decoded(spec, frame));
  EXPECT_THAT(decoded(spec, joined(frame, frame)).error().message(), HasSubstr("bytes after the zstd frame of"));
  EXPECT_THAT(decoded(spec, joined(frame, skippable)).error().message(), HasSubstr("bytes after the zstd frame of"));
  EXPECT_THAT(decoded(spec, joined(skippable, frame)).error().message(), HasSubstr("do not begin with a zstd frame"));
  EXPECT_THAT(decoded(spec, Bytes(3)).error().message(), HasSubstr("do not begin with a zstd frame"));
}

TEST(Chunk, OfAZstdFrameWithoutContentSizeIsAcceptedIfItHasTheRightSize) {
  const ArraySpec spec = *make_array_spec(Version::kV2, DType::kUint8, {64}, {64}, Compression::kZstd);
  for (const auto& [size, good] : {std::pair{64, true}, {63, false}, {65, false}, {1 << 20, false}}) {
    const Bytes raw(static_cast<size_t>(size), std::byte{7});
    ZSTD_CCtx* context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    Bytes frame(ZSTD_compressBound(raw.size()));
    frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), raw.data(), raw.size()));
    ZSTD_freeCCtx(context);
    EXPECT_EQ(decoded(spec, frame).has_value(), good) << size;
  }
}

TEST(Chunk, OfAnotherSizeThanItsShapeIsRefused) {
  for (size_t i = 0; i < 4; ++i) {
    const ArraySpec small = checked_specs({40, 5})[i], large = checked_specs({40, 6})[i];
    const Bytes encoded = encoded_with(large, Bytes(480));
    EXPECT_THAT(decoded(small, encoded).error().message(), HasSubstr("expected 400")) << metadata_text(small);
    Scratch scratch;
    EXPECT_EQ(encode_chunk(small, Bytes(480), scratch).error().kind(), ErrorKind::kInvalidArgument);
  }
  const ArraySpec plain = *make_array_spec(Version::kV2, DType::kUint8, {4}, {4}, Compression::kNone);
  EXPECT_THAT(decoded(plain, Bytes(5)).error().message(), HasSubstr("5 bytes, expected 4"));
}

TEST(Chunk, WhoseBloscHeaderLiesIsRefused) {
  ArraySpec spec = *make_array_spec(Version::kV3, DType::kBfloat16, {4096}, {4096}, Compression::kBlosc);
  spec.codecs.pop_back();
  Random random(4);
  const Bytes good = encoded_with(spec, random_bytes(random, 8192));
  ASSERT_TRUE(decoded(spec, good));
  struct Case {
    size_t offset;
    uint32_t value;
  };
  // Header: version, lz version, flags, typesize, nbytes le32, blocksize le32, cbytes le32.
  for (const Case& c : {Case{4, 8191}, Case{4, 0x7FFFFFFF}, Case{4, 0xFFFFFFFF}, Case{8, 0}, Case{8, 0x7FFFFFFF},
                        Case{12, 16}, Case{12, 0xFFFFFFFF}, Case{0, 0}, Case{0, 0xFFFFFFFF}}) {
    Bytes bad = good;
    store_le(c.value, &bad[c.offset]);
    auto status = decoded(spec, bad);
    ASSERT_FALSE(status) << c.offset << " " << c.value;
    EXPECT_EQ(status.error().kind(), ErrorKind::kCorruptData);
  }
}

TEST(Chunk, WithAnyDamageIsDecodedWithinItsBuffers) {
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    ArraySpec spec = random_spec(random);
    const Bytes raw = random_bytes(random, chunk_bytes(spec), spec.dtype);
    Bytes encoded = encoded_with(spec, raw);
    for (int flip = 0; flip < 4 && !encoded.empty(); ++flip)
      encoded[static_cast<size_t>(pick(random, 0, static_cast<int64_t>(encoded.size()) - 1))] = std::byte(random() % 256);
    if (pick(random, 0, 3) == 0) encoded.resize(static_cast<size_t>(pick(random, 0, static_cast<int64_t>(encoded.size()))));
    // Nothing to expect but that it ends, within its buffers; the sanitizers look on.
    (void)decoded(spec, encoded);
  }
}

}  // namespace
}  // namespace maxport::zarr
