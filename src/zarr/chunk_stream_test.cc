#include "zarr/chunk_stream.h"

#include <gtest/gtest.h>

#include <random>

#include "zarr/chunk.h"

namespace maxport::zarr {
namespace {

/// Gives at most what is asked, from memory of its own.
class OwnedSource final : public ByteSource {
 public:
  explicit OwnedSource(Bytes bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<ByteSpan> read(uint64_t offset, uint64_t length, Bytes& keep) override {
    keep.assign(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), bytes_.begin() + static_cast<std::ptrdiff_t>(offset + length));
    return ByteSpan(keep);
  }

 private:
  Bytes bytes_;
};

constexpr int64_t kElements = 3'000'000;

ArraySpec spec_of(Compression compression) {
  return *make_array_spec(Version::kV2, DType::kBfloat16, {kElements}, {kElements}, compression);
}

Bytes content() {
  std::mt19937 random(3);
  Bytes out(2 * kElements);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i % 2 ? 0x3c + random() % 2 : random());
  return out;
}

Bytes encoded(const ArraySpec& spec, ByteSpan raw) {
  Scratch scratch;
  const ByteSpan bytes = *encode_chunk(spec, raw, scratch);
  return {bytes.begin(), bytes.end()};
}

Result<Bytes> streamed(const ArraySpec& spec, Bytes stored, size_t piece) {
  MAXPORT_ASSIGN_OR_RETURN(const auto stream, stream_chunk(spec, std::make_unique<OwnedSource>(std::move(stored))));
  Bytes out(2 * kElements);
  for (size_t at = 0; at < out.size(); at += piece)
    MAXPORT_RETURN_IF_ERROR(stream->read(MutableByteSpan(out).subspan(at, std::min(piece, out.size() - at))));
  return out;
}

class Streamed : public testing::TestWithParam<Compression> {};

TEST_P(Streamed, GivesTheChunkInPiecesOfAnySize) {
  const ArraySpec spec = spec_of(GetParam());
  ASSERT_TRUE(can_stream(spec));
  const Bytes raw = content(), stored = encoded(spec, raw);
  for (size_t piece : {size_t{999'999}, size_t{1} << 20, raw.size()}) {
    const auto out = streamed(spec, stored, piece);
    ASSERT_TRUE(out) << out.error().message();
    EXPECT_EQ(*out, raw) << piece;
  }
}

TEST_P(Streamed, NoticesBytesThatAreMissingOrTooMany) {
  const ArraySpec spec = spec_of(GetParam());
  const Bytes raw = content();
  for (std::ptrdiff_t change : {-1, -1000, 1}) {
    Bytes stored = encoded(spec, raw);
    stored.resize(static_cast<size_t>(static_cast<std::ptrdiff_t>(stored.size()) + change));
    const auto out = streamed(spec, std::move(stored), 100'000);
    ASSERT_FALSE(out) << change;
    EXPECT_EQ(out.error().kind(), ErrorKind::kCorruptData);
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, Streamed, testing::Values(Compression::kNone, Compression::kZstd));

/// As MaxText writes it: each chunk a shard with one sub-chunk of its own size.
ArraySpec sharded() {
  ArraySpec spec = *make_array_spec(Version::kV3, DType::kBfloat16, {kElements}, {kElements}, Compression::kZstd);
  const Sharding inner{.chunk_shape = {kElements},
                       .codecs = spec.codecs,
                       .index_codecs = {{.kind = CodecKind::kBytes}, {.kind = CodecKind::kCrc32c}}};
  spec.codecs = {{.kind = CodecKind::kSharding, .sharding = std::make_shared<Sharding>(inner)}};
  return spec;
}

TEST(StreamedShard, GivesItsOnlySubChunk) {
  const ArraySpec spec = sharded();
  ASSERT_TRUE(can_stream(spec));
  const Bytes raw = content();
  const auto out = streamed(spec, encoded(spec, raw), 777'777);
  ASSERT_TRUE(out) << out.error().message();
  EXPECT_EQ(*out, raw);
}

TEST(StreamedShard, NoticesAnIndexThatWasCut) {
  const ArraySpec spec = sharded();
  Bytes stored = encoded(spec, content());
  stored.pop_back();
  EXPECT_FALSE(streamed(spec, stored, 1 << 20));
  stored.resize(3);
  EXPECT_FALSE(streamed(spec, stored, 1 << 20));
}

TEST(StreamedZstd, NoticesAFrameOfAnotherSize) {
  const ArraySpec spec = spec_of(Compression::kZstd);
  for (int64_t elements : {kElements - 1, kElements + 1}) {
    const ArraySpec other = *make_array_spec(Version::kV2, DType::kBfloat16, {elements}, {elements}, Compression::kZstd);
    const auto out = streamed(spec, encoded(other, Bytes(static_cast<size_t>(2 * elements))), 1 << 20);
    ASSERT_FALSE(out) << elements;
    EXPECT_EQ(out.error().kind(), ErrorKind::kCorruptData);
  }
}

TEST(StreamedZstd, NoticesAFlippedBit) {
  const ArraySpec spec = spec_of(Compression::kZstd);
  const Bytes raw = content();
  Bytes stored = encoded(spec, raw);
  for (size_t at : {size_t{2}, stored.size() / 2, stored.size() - 2}) {
    stored[at] ^= std::byte{4};
    EXPECT_FALSE(streamed(spec, stored, 1 << 20)) << at;
    stored[at] ^= std::byte{4};
  }
}

TEST(CanStream, IsFalseForChecksumsAndBlosc) {
  EXPECT_FALSE(can_stream(*make_array_spec(Version::kV3, DType::kBfloat16, {8}, {8}, Compression::kNone)));
  EXPECT_FALSE(can_stream(*make_array_spec(Version::kV3, DType::kBfloat16, {8}, {8}, Compression::kBlosc)));
}

}  // namespace
}  // namespace maxport::zarr
