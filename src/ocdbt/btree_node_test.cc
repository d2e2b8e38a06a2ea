#include "ocdbt/btree_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ocdbt/frame.h"
#include "ocdbt/test_bytes.h"

namespace maxport::ocdbt {
namespace {

using testing::HasSubstr;

constexpr std::string_view kZarray4 =
    R"({"chunks":[4],"compressor":{"id":"zstd","level":1},"dimension_separator":".","dtype":"<i4","fill_value":null,)"
    R"("filters":null,"order":"C","shape":[4],"zarr_format":2})";

LeafEntry inline_entry(std::string_view key, std::string_view value) {
  return {.key = key, .value = {0, 0, value.size()}, .inline_value = as_bytes(value).data()};
}

Bytes stock_leaf_body() {
  Bytes keep;
  decode_frame(from_hex(kStockLeaf), kBtreeNodeMagic, "the node", keep).value();
  return keep;
}

std::string failure(ByteSpan body) {
  const auto result = decode_btree_node(body);
  if (result) return "no failure";
  EXPECT_EQ(result.error().kind(), ErrorKind::kCorruptData);
  return result.error().message();
}

TEST(BtreeNode, ReadsTheLeafThatStockWrote) {
  const Bytes body = stock_leaf_body();
  ASSERT_EQ(body.size(), 452u);
  const BtreeNode node = *decode_btree_node(body);
  EXPECT_EQ(node.height(), 0);
  EXPECT_EQ(node.files(), (std::vector<DataFile>{{"ocdbt.process_0/", "d/94fa6441785fe2f1aedd755821849caa"}}));
  const auto leaves = node.leaves();
  ASSERT_EQ(leaves.size(), 4u);
  EXPECT_EQ(leaves[0].key, "a/.zarray");
  EXPECT_EQ(as_text(leaves[0].inline_bytes()), kZarray4);
  EXPECT_EQ(leaves[1].key, "a/0");
  EXPECT_EQ(hex(leaves[1].inline_bytes()),
            "28b52ffd2010810000"
            "00000000010000000200000003000000");
  EXPECT_EQ(leaves[2].key, "b/.zarray");
  EXPECT_EQ(leaves[2].value.length, 168u);
  EXPECT_EQ(leaves[3].key, "b/0");
  EXPECT_FALSE(leaves[3].is_inline());
  EXPECT_EQ(leaves[3].value, (Location{.file = 0, .offset = 0, .length = 2410}));
}

TEST(BtreeNode, HasTheBytesThatStockWrites) {
  const Bytes body = stock_leaf_body();
  const BtreeNode node = *decode_btree_node(body);
  const Bytes again = encode_leaf_node(node.leaves(), node.files(), 0);
  EXPECT_EQ(hex(again), hex(body));
  const Bytes plain = *encode_frame(kBtreeNodeMagic, again, std::nullopt);
  EXPECT_EQ(plain.size(), 470u);
  EXPECT_EQ(hex(ByteSpan(plain).subspan(4, 8)), "d601000000000000");
  EXPECT_EQ(hex(ByteSpan(plain).last(4)), "5a357c8d");
}

TEST(BtreeNode, ReadsBackALeaf) {
  const std::vector<DataFile> files = {{"", "d/1"}, {"", "d/2"}};
  const std::vector<LeafEntry> entries = {
      inline_entry("pre", ""),           {.key = "prefix", .value = {1, 5, 6}},
      inline_entry("prefix/a", "value"), {.key = "prefix/b", .value = {0, (uint64_t{1} << 63) - 10, 9}},
      inline_entry("prez", ""),
  };
  for (const size_t dropped : {0, 3}) {
    const BtreeNode node = *decode_btree_node(encode_leaf_node(entries, files, dropped));
    EXPECT_EQ(node.files(), files);
    ASSERT_EQ(node.leaves().size(), entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      EXPECT_EQ(node.leaves()[i].key, entries[i].key.substr(dropped));
      EXPECT_EQ(node.leaves()[i].value, entries[i].value);
      ASSERT_EQ(node.leaves()[i].is_inline(), entries[i].is_inline());
      if (entries[i].is_inline()) {
        EXPECT_EQ(as_text(node.leaves()[i].inline_bytes()), as_text(entries[i].inline_bytes()));
      }
    }
  }
}

TEST(BtreeNode, ReadsBackAnInteriorNode) {
  const std::vector<InteriorEntry> entries = {
      {.key = "pa", .subtree_prefix_length = 1, .child = {0, 1, 2}, .statistics = {3, 4, 5}},
      {.key = "pb/c", .subtree_prefix_length = 4, .child = {0, 6, 7}, .statistics = {8, 9, 10}}};
  const BtreeNode node = *decode_btree_node(encode_interior_node(3, entries, {{"", "d/1"}}, 1));
  EXPECT_EQ(node.height(), 3);
  ASSERT_EQ(node.children().size(), 2u);
  EXPECT_EQ(node.children()[0].key, "a");
  EXPECT_EQ(node.children()[0].subtree_prefix_length, 0u);
  EXPECT_EQ(node.children()[1].key, "b/c");
  EXPECT_EQ(node.children()[1].subtree_prefix_length, 3u);
  EXPECT_EQ(node.children()[1].child, (Location{0, 6, 7}));
  EXPECT_EQ(node.children()[1].statistics, (Statistics{8, 9, 10}));
}

TEST(BtreeNode, RefusesEveryCutOfItsBody) {
  const Bytes body = stock_leaf_body();
  for (size_t size = 0; size < body.size(); ++size)
    ASSERT_NE(failure(ByteSpan(body).first(size)), "no failure") << size;
  Bytes longer = body;
  longer.push_back({});
  EXPECT_THAT(failure(longer), HasSubstr("1 bytes follow the end of the body at offset 452"));
}

TEST(BtreeNode, RefusesLeavesThatCannotBe) {
  const std::pair<const char*, const char*> cases[] = {
      // height, files, entries, prefix lengths, suffix lengths, suffixes, value lengths, kinds, ids, offsets, values
      {"00 00 00", "0 entries stated at offset 2, expected 1 to 1048576"},
      {"00 00 818040", "1048577 entries stated at offset 2"},
      {"00 00 808040 00", "1048576 entries stated at offset 2, more than the 1 bytes left"},
      {"00 00 02 02 0101 6162 0000 0000", "key 1 at offset 7 repeats 2 bytes of a key of 1"},
      {"00 00 02 00 0101 6261 0000 0000", "key 1 at offset 7 is not larger than the one before it"},
      {"00 00 02 00 0101 6161 0000 0000", "key 1 at offset 7 is not larger"},
      {"00 00 02 01 0100 61 0000 0000", "key 1 at offset 7 is not larger"},
      {"00 00 01 808004 61 00 00", "does not fit 16 bits"},
      {"00 00 01 01 61 00 02", "has kind 2 at offset 6"},
      {"00 00 01 01 61 05 00 61", "5 more bytes are needed at offset 7"},
      {"00 00 01 01 61 818040 00 61", "value 0 of 1048577 bytes has kind 0 at offset 8"},
      {"00 00 01 01 61 05 01 00 00", "data file 0 named before offset 9, but the table has 0"},
      {"00 01 01 00 78 01 01 61 05 01 01 00", "data file 1 named before offset 12, but the table has 1"},
      {"00 01 01 00 78 01 01 61 05 01 00 ffffffffffffffffff01", "5 bytes from offset 18446744073709551615"},
      {"00 01 01 00 78 01 01 61 01 01 00 ffffffffffffffff7f", "1 bytes from offset 9223372036854775807"},
      {"00 01 01 00 78 01 01 61 ffffffffffffffffff01 01 00 01", "end beyond 2^63"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_THAT(failure(from_hex(bytes)), HasSubstr(text)) << bytes;
}

TEST(BtreeNode, RefusesInteriorNodesThatCannotBe) {
  const std::pair<const char*, const char*> cases[] = {
      // height, table of one file "x", entries, (prefix lengths,) suffix lengths, subtree prefix lengths, suffixes, ...
      {"01 01010078 01 01 02 61 00 00 00 00 00 00", "entry 0 before offset 9 drops 2 bytes of a key of 1"},
      {"01 01010078 02 00 0101 0000 6261 0000 0000 0000 0000 0000 0000", "key 1 at offset 12 is not larger"},
      {"01 01010078 01 01 00 61 01 00 00 00 00 00", "data file 1 named before offset 12, but the table has 1"},
      {"01 01010078 01 01 00 61 00 ffffffffffffffff7f 01 00 00 00", "end beyond 2^63"},
      {"01 01010078 01 01 00 61 00 ffffffffffffffffff01 ffffffffffffffffff01 00 00 00", "end beyond 2^63"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_THAT(failure(from_hex(bytes)), HasSubstr(text)) << bytes;
}

TEST(BtreeNode, RefusesKeysThatGrowOutOfAllProportion) {
  ByteWriter writer;
  constexpr int kEntries = 10000;
  const std::string first(60000, 'x');
  writer.write_u8(0);
  writer.write_varint(0);
  writer.write_varint(kEntries);
  for (int i = 1; i < kEntries; ++i) writer.write_varint(first.size() + (i == 1 ? 0 : 2));
  writer.write_varint(first.size());
  for (int i = 1; i < kEntries; ++i) writer.write_varint(2);
  writer.write_text(first);
  EXPECT_THAT(failure(writer.bytes()), HasSubstr("at most 268435456 are allowed"));
}

TEST(BtreeNode, RefusesAKeyThatIsTooLong) {
  ByteWriter writer;
  writer.write_u8(0);
  writer.write_varint(0);
  writer.write_varint(2);
  writer.write_varint(kMaxKeyBytes);
  writer.write_varint(kMaxKeyBytes);
  writer.write_varint(1);
  writer.write_text(std::string(kMaxKeyBytes + 1, 'x'));
  EXPECT_THAT(failure(writer.bytes()), HasSubstr("has 65536 bytes, at most 65535 are allowed"));
}

}  // namespace
}  // namespace maxport::ocdbt
