#include "ocdbt/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "ocdbt/test_bytes.h"

namespace maxport::ocdbt {
namespace {

using testing::HasSubstr;

Bytes copy(std::string_view text) { return Bytes(as_bytes(text).begin(), as_bytes(text).end()); }

/// A frame whose body is stored as given but flagged as compressed.
Bytes compressed_frame(ByteSpan body) {
  Bytes frame = *encode_frame(kBtreeNodeMagic, body, std::nullopt);
  frame[13] = std::byte{1};
  store_le(crc32c(ByteSpan(frame).first(frame.size() - 4)), frame.data() + frame.size() - 4);
  return frame;
}

/// One zstd frame that does not state its size.
Bytes zstd_stream(ByteSpan input, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  if (window_log != 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  Bytes out(ZSTD_compressBound(input.size()));
  out.resize(ZSTD_compress2(context, out.data(), out.size(), input.data(), input.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::string failure(ByteSpan frame, uint64_t max_body_bytes = kMaxBodyBytes) {
  Bytes keep;
  const auto result = decode_frame(frame, kBtreeNodeMagic, "the node", keep, max_body_bytes);
  if (result) return "no failure";
  EXPECT_EQ(result.error().kind(), ErrorKind::kCorruptData);
  return result.error().message();
}

TEST(Frame, ReadsBackWhatItWrote) {
  for (const std::string& body : {std::string(), std::string("x"), std::string(100000, 'y')})
    for (const std::optional<int> level :
         {std::optional<int>(), std::optional(0), std::optional(-5), std::optional(19)}) {
      const Bytes frame = *encode_frame(kBtreeNodeMagic, as_bytes(body), level);
      Bytes keep;
      EXPECT_EQ(as_text(*decode_frame(frame, kBtreeNodeMagic, "the node", keep)), body);
    }
}

TEST(Frame, ReadsAZstdFrameThatDoesNotStateItsSize) {
  const std::string body(300000, 'z');
  Bytes keep;
  const Bytes frame = compressed_frame(zstd_stream(as_bytes(body)));
  EXPECT_EQ(as_text(*decode_frame(frame, kBtreeNodeMagic, "the node", keep)), body);
  EXPECT_EQ(as_text(*decode_frame(frame, kBtreeNodeMagic, "the node", keep, body.size())), body);
}

TEST(Frame, StopsAZstdBombAtTheLimit) {
  const std::string body(1 << 20, '\0');
  EXPECT_THAT(failure(compressed_frame(zstd_stream(as_bytes(body))), 100000), HasSubstr("at most 100000 are allowed"));
  const Bytes stated = *encode_frame(kBtreeNodeMagic, as_bytes(body), 1);
  EXPECT_THAT(failure(stated, 100000), HasSubstr("decodes to 1048576 bytes or more, at most 100000 are allowed"));
}

TEST(Frame, TakesNoMemoryForASizeThatAZstdFrameCannotHold) {
  // Single segment, eight bytes of size (128 MiB), then an empty last raw block.
  const Bytes frame = compressed_frame(from_hex("28b52ffd e0 0000000800000000 010000"));
  EXPECT_THAT(failure(frame), HasSubstr("states 134217728 bytes, more than it can hold"));
}

TEST(Frame, RefusesAllButOneZstdFrame) {
  const Bytes one = zstd_stream(as_bytes("abc"));
  Bytes two = one;
  two.insert(two.end(), one.begin(), one.end());
  EXPECT_THAT(failure(compressed_frame(two)), HasSubstr("12 bytes follow the zstd frame of 12 bytes"));
  Bytes trailing = one;
  trailing.push_back({});
  EXPECT_THAT(failure(compressed_frame(trailing)), HasSubstr("1 bytes follow the zstd frame"));
  Bytes skippable = from_hex("502a4d18 00000000");
  skippable.insert(skippable.end(), one.begin(), one.end());
  EXPECT_THAT(failure(compressed_frame(skippable)), HasSubstr("does not begin with a zstd frame"));
  EXPECT_THAT(failure(compressed_frame(ByteSpan(one).first(one.size() - 1))), HasSubstr("zstd"));
  EXPECT_THAT(failure(compressed_frame({})), HasSubstr("does not begin with a zstd frame"));
}

TEST(Frame, RefusesEveryChangedByte) {
  const Bytes good = *encode_frame(kBtreeNodeMagic, as_bytes("some body"), std::nullopt);
  for (size_t i = 0; i < good.size(); ++i)
    for (const int bit : {0, 3, 7}) {
      Bytes bad = good;
      bad[i] ^= static_cast<std::byte>(1 << bit);
      EXPECT_NE(failure(bad), "no failure") << i;
    }
}

TEST(Frame, RefusesEveryCut) {
  const Bytes good = *encode_frame(kBtreeNodeMagic, as_bytes("some body"), std::nullopt);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(failure(ByteSpan(good).first(size)), "no failure") << size;
  Bytes longer = good;
  longer.push_back({});
  EXPECT_THAT(failure(longer), HasSubstr("states at offset 4 that it has 27 bytes, but there are 28"));
}

struct Damage {
  size_t offset;
  uint8_t value;
  const char* text;
};

TEST(Frame, SaysWhatIsWrongWhereTheCrcIsRight) {
  for (const Damage& damage :
       {Damage{0, 0xff, "begins with ffdb20de, expected 0cdb20de"}, Damage{12, 1, "has format version 1, expected 0"},
        Damage{13, 2, "has compression method 2, expected 0 (none) or 1 (zstd)"},
        Damage{12, 0x80, "has compression method"}}) {
    Bytes bad = *encode_frame(kBtreeNodeMagic, as_bytes("some body"), std::nullopt);
    bad[damage.offset] = static_cast<std::byte>(damage.value);
    store_le(crc32c(ByteSpan(bad).first(bad.size() - 4)), bad.data() + bad.size() - 4);
    EXPECT_THAT(failure(bad), HasSubstr(damage.text));
  }
}

TEST(Frame, NamesTheCrcThatIsWrong) {
  Bytes bad = copy(as_text(*encode_frame(kBtreeNodeMagic, as_bytes("x"), std::nullopt)));
  bad.back() ^= std::byte{1};
  EXPECT_THAT(failure(bad), HasSubstr("is stored at offset 15"));
}

}  // namespace
}  // namespace maxport::ocdbt
