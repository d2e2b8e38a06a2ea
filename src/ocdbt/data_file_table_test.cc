#include "ocdbt/data_file_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ocdbt/test_bytes.h"

namespace maxport::ocdbt {
namespace {

using testing::HasSubstr;

Bytes encode(const std::vector<DataFile>& files) {
  ByteWriter writer;
  encode_data_file_table(files, writer);
  return writer.take();
}

Result<std::vector<DataFile>> decode(ByteSpan bytes) {
  ByteReader reader(bytes, "the body");
  return decode_data_file_table(reader);
}

TEST(DataFileTable, HasTheBytesThatStockWrites) {
  const std::vector<DataFile> files = {{"ocdbt.process_0/", "d/176519e6e3cbfc49d14889c0c435f759"},
                                       {"ocdbt.process_0/", "d/56189325cfb8a6dd9ba5769ca5be7f3d"},
                                       {"ocdbt.process_0/", "d/9368900bcaeab2be8d4a6961b1df6efb"}};
  const Bytes bytes = encode(files);
  EXPECT_EQ(hex(ByteSpan(bytes).first(9)), "031212322020101010");
  EXPECT_EQ(as_text(ByteSpan(bytes).subspan(9)),
            "ocdbt.process_0/d/176519e6e3cbfc49d14889c0c435f75956189325cfb8a6dd9ba5769ca5be7f3d"
            "9368900bcaeab2be8d4a6961b1df6efb");
  EXPECT_EQ(*decode(bytes), files);
}

TEST(DataFileTable, ReadsBackAnyPaths) {
  for (const std::vector<DataFile>& files : {std::vector<DataFile>{},
                                             {{"", ""}},
                                             {{"", ""}, {"", "d/1"}},
                                             {{"a/", "b"}, {"a/b/", "b"}, {"a/b/", "c"}},
                                             {{"b/", "x"}, {"", "b/x"}},
                                             {{"", std::string(kMaxPathBytes, 'x')}}})
    EXPECT_EQ(*decode(encode(files)), files);
}

TEST(DataFileTable, SharesTheRelativePartOnlyWithinOneBasePath) {
  // "a/" + "b/c" and "a/b/" + "c" are the same path, but may share the shorter base path only.
  const Bytes bytes = encode({{"a/", "b/c"}, {"a/b/", "c"}});
  EXPECT_EQ(hex(ByteSpan(bytes).first(6)), "020205030204");
  EXPECT_THAT(decode(from_hex("02 05 0500 0204 612f622f63")).error().message(),
              HasSubstr("repeats 5 bytes of a path with another base path"));
}

TEST(DataFileTable, RefusesWhatCannotBe) {
  const std::pair<const char*, const char*> cases[] = {
      {"ffffffff0f", "more than its bytes can hold"},
      {"ffffffffffffffffff01", "more than its bytes can hold"},
      {"ffffffffffffffffff02", "does not fit 64 bits"},
      {"01 05 00 61", "5 more bytes are needed at offset 3"},
      {"01 01 02 61", "a base path of 2"},
      {"02 02 0101 0000 6162", "it repeats 2 of 1 bytes"},
      {"02 808004 0101 0000 6162", "does not fit 16 bits"},
      {"02 01", "more than its bytes can hold"},
      {"02 00 01", "ends at byte 3"},
  };
  for (const auto& [bytes, text] : cases) {
    const auto result = decode(from_hex(bytes));
    ASSERT_FALSE(result) << bytes;
    EXPECT_EQ(result.error().kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(result.error().message(), HasSubstr(text));
  }
}

TEST(DataFileTable, RefusesPathsThatGrowOutOfAllProportion) {
  ByteWriter writer;
  constexpr int kFiles = 2000;
  const std::string first(60000, 'x');
  writer.write_varint(kFiles);
  for (int i = 1; i < kFiles; ++i) writer.write_varint(first.size());
  writer.write_varint(first.size());
  for (int i = 1; i < kFiles; ++i) writer.write_varint(0);
  for (int i = 0; i < kFiles; ++i) writer.write_varint(0);
  writer.write_text(first);
  EXPECT_THAT(decode(writer.bytes()).error().message(), HasSubstr("its paths have more than 67108864 bytes"));
}

TEST(ResolvePath, StaysBelowTheDatabase) {
  EXPECT_EQ(*resolve_path("", "d/1"), "d/1");
  EXPECT_EQ(*resolve_path("ocdbt.process_0/", "d/..1"), "ocdbt.process_0/d/..1");
  const std::pair<std::string, std::string> bad[] = {{"", ""},
                                                     {"", "/etc/passwd"},
                                                     {"", "../x"},
                                                     {"", "a/../../x"},
                                                     {"a/", "/x"},
                                                     {"/", "x"},
                                                     {"", "a/"},
                                                     {"", "./a"},
                                                     {".", "./a"},
                                                     {"a/.", "./x"},
                                                     {"", "a\\b"},
                                                     {"", std::string("a\0b", 3)},
                                                     {std::string(40000, 'x') + "/", std::string(40000, 'y')}};
  for (const auto& [inherited, path] : bad) {
    const auto result = resolve_path(inherited, path);
    ASSERT_FALSE(result) << path;
    EXPECT_EQ(result.error().kind(), ErrorKind::kCorruptData);
  }
}

}  // namespace
}  // namespace maxport::ocdbt
