#include "ocdbt/version_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ocdbt/test_bytes.h"

namespace maxport::ocdbt {
namespace {

using testing::HasSubstr;

TEST(VersionNode, ReadsBackALeafAndAnInteriorNode) {
  VersionNode leaf;
  leaf.files = {{"", "d/1"}};
  leaf.versions = {{.generation = 3, .root_height = 1, .root = {0, 1, 2}, .statistics = {3, 4, 5}, .commit_time = 6},
                   {.generation = 4, .root_height = 0, .root = {0, 7, 8}, .statistics = {}, .commit_time = 9}};
  const auto read_leaf = decode_version_node(encode_version_node(leaf));
  ASSERT_TRUE(read_leaf) << read_leaf.error().message();
  EXPECT_EQ(read_leaf->versions, leaf.versions);
  EXPECT_EQ(read_leaf->files, leaf.files);

  VersionNode interior;
  interior.height = 2;
  interior.files = leaf.files;
  interior.references = {
      {.generation = 16, .location = {0, 1, 2}, .num_generations = 16, .commit_time = 3, .height = 1},
      {.generation = 32, .location = {0, 3, 4}, .num_generations = 7, .commit_time = 5, .height = 1}};
  const auto read_interior = decode_version_node(encode_version_node(interior));
  ASSERT_TRUE(read_interior) << read_interior.error().message();
  EXPECT_EQ(read_interior->references, interior.references);
}

TEST(VersionNode, RefusesWhatCannotBe) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "ends at byte 0"},
      {"00 00 00", "version_tree_arity_log2 at offset 0 is 0"},
      {"04 00 00 00", "no version at offset 3"},
      {"10 00 00 05 0000000000000000 0000000000000000 00000000",
       "5 versions stated at offset 3, at most 1 are allowed"},
      {"04 01 00 00", "the node has no entries"},
      {"04 01 00 808080808020", "1099511627776 version nodes stated at offset 3, at most 0"},
      {"01 01 00 03 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000",
       "3 version nodes stated at offset 3, at most 2"},
  };
  for (const auto& [bytes, text] : cases) {
    const auto result = decode_version_node(from_hex(bytes));
    ASSERT_FALSE(result) << bytes;
    EXPECT_EQ(result.error().kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(result.error().message(), HasSubstr(text));
  }
}

TEST(Statistics, SaturateInsteadOfWrappingAround) {
  Statistics sum{.num_keys = UINT64_MAX, .num_tree_bytes = 1, .num_indirect_value_bytes = 2};
  sum += {.num_keys = 1, .num_tree_bytes = 2, .num_indirect_value_bytes = 3};
  EXPECT_EQ(sum, (Statistics{.num_keys = UINT64_MAX, .num_tree_bytes = 3, .num_indirect_value_bytes = 5}));
}

}  // namespace
}  // namespace maxport::ocdbt
