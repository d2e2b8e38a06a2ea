#include "base/bytes.h"

#include <gtest/gtest.h>

namespace maxport {
namespace {

TEST(Crc32c, MatchesThePublishedCheckValue) { EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283u); }

TEST(Crc32c, CanBeComputedInPieces) {
  EXPECT_EQ(crc32c_extend(crc32c(as_bytes("1234")), as_bytes("56789")), crc32c(as_bytes("123456789")));
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(ByteReader, ReadsBackWhatByteWriterWrote) {
  ByteWriter writer;
  writer.write_u8(7);
  writer.write_le32(0x01020304);
  writer.write_be32(0x0cdb3a2a);
  writer.write_le64(0x1122334455667788);
  for (uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{300}, UINT64_MAX})
    writer.write_varint(value);
  EXPECT_EQ(hex(ByteSpan(writer.bytes()).subspan(5, 4)), "0cdb3a2a");
  ByteReader reader(writer.bytes());
  EXPECT_EQ(*reader.read_u8(), 7);
  EXPECT_EQ(*reader.read_le32(), 0x01020304u);
  EXPECT_EQ(*reader.read_be32(), 0x0cdb3a2au);
  EXPECT_EQ(*reader.read_le64(), 0x1122334455667788u);
  for (uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{300}, UINT64_MAX})
    EXPECT_EQ(*reader.read_varint(64), value);
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(ByteReader, NamesTheOffsetWhenBytesRunOut) {
  Bytes bytes(3);
  ByteReader reader(bytes, "node");
  ASSERT_TRUE(reader.read_bytes(2));
  auto result = reader.read_le32();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kCorruptData);
  EXPECT_EQ(result.error().message(), "node ends at byte 3, but 4 more bytes are needed at offset 2");
}

TEST(ByteReader, RefusesIntegersThatDoNotFitTheirWidth) {
  ByteWriter writer;
  writer.write_varint(65536);
  EXPECT_FALSE(ByteReader(writer.bytes()).read_varint(16));
  EXPECT_EQ(*ByteReader(writer.bytes()).read_varint(32), 65536u);
  const Bytes endless(11, std::byte{0x80});
  EXPECT_FALSE(ByteReader(endless).read_varint(64));
}

}  // namespace
}  // namespace maxport
