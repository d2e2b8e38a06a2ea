#include "ocdbt/tree_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ocdbt/frame.h"

namespace maxport::ocdbt {
namespace {

using testing::ElementsAre;

std::vector<size_t> cut(const std::vector<uint64_t>& sizes, const CutLimits& limits) {
  return cut_level(sizes.size(), [&](size_t i) { return sizes[i]; }, limits);
}

TEST(CutLevel, KeepsALevelThatFitsInOneNode) {
  EXPECT_THAT(cut({10, 20, 30}, {.max_bytes = 60}), ElementsAre(3));
  EXPECT_THAT(cut({}, {.max_bytes = 60}), ElementsAre());
  EXPECT_THAT(cut({10, 20, 30}, {.max_bytes = UINT64_MAX}), ElementsAre(3));
}

TEST(CutLevel, MakesNodesOfAboutEqualSize) {
  EXPECT_THAT(cut(std::vector<uint64_t>(10, 10), {.max_bytes = 90}), ElementsAre(5, 10));
  EXPECT_THAT(cut(std::vector<uint64_t>(10, 10), {.max_bytes = 35}), ElementsAre(3, 6, 8, 10));
}

TEST(CutLevel, GivesAnEntryThatIsTooLargeANodeOfItsOwn) {
  EXPECT_THAT(cut({10, 500, 10, 10}, {.max_bytes = 60}), ElementsAre(1, 2, 4));
  EXPECT_THAT(cut({500, 500}, {.max_bytes = 1}), ElementsAre(1, 2));
}

TEST(CutLevel, RespectsTheLeastAndTheMostEntries) {
  EXPECT_THAT(cut(std::vector<uint64_t>(5, 10), {.max_bytes = 1, .min_entries = 2}), ElementsAre(2, 4, 5));
  EXPECT_THAT(cut(std::vector<uint64_t>(6, 10), {.max_bytes = 100, .max_entries = 4}), ElementsAre(3, 6));
  EXPECT_THAT(cut(std::vector<uint64_t>(6, 0), {.max_bytes = 100, .max_entries = 4}), ElementsAre(4, 6));
}

/// Stores nodes in memory and reads them back.
class TreeTest : public testing::Test {
 protected:
  Result<BuiltTree> build(const std::vector<std::string>& keys, uint64_t max_bytes) {
    TreeBuilder builder({{"", "d/b"}, {"", "d/a"}}, {"", "d/nodes"}, max_bytes, std::nullopt,
                        [this](ByteSpan node) -> Result<uint64_t> {
                          const uint64_t offset = file_.size();
                          file_.insert(file_.end(), node.begin(), node.end());
                          return offset;
                        });
    return builder.build(keys.size(), [&](size_t i) {
      return LeafEntry{.key = keys[i], .value = {.file = static_cast<uint32_t>(i % 2), .offset = i, .length = 10}};
    });
  }

  BtreeNode node(const Location& at) {
    Bytes keep;
    return *decode_btree_node(
        *decode_frame(ByteSpan(file_).subspan(at.offset, at.length), kBtreeNodeMagic, "the node", keep));
  }

  Bytes file_;
};

TEST_F(TreeTest, IsASingleLeafWithWholeKeysWhenItFits) {
  const BuiltTree tree = *build({"same/a", "same/b"}, 1000);
  EXPECT_EQ(tree.height, 0);
  EXPECT_EQ(tree.statistics,
            (Statistics{.num_keys = 2, .num_tree_bytes = tree.root.length, .num_indirect_value_bytes = 20}));
  EXPECT_EQ(node(tree.root).first_key(), "same/a");
}

TEST_F(TreeTest, NamesDataFilesInOrder) {
  const BuiltTree tree = *build({"k1", "k2"}, 1000);
  const BtreeNode leaf = node(tree.root);
  EXPECT_EQ(leaf.files(), (std::vector<DataFile>{{"", "d/a"}, {"", "d/b"}}));
  EXPECT_EQ(leaf.leaves()[0].value.file, 1u);
  EXPECT_EQ(leaf.leaves()[1].value.file, 0u);
}

TEST_F(TreeTest, NamesOnlyDataFilesThatTheNodeNeeds) {
  const BuiltTree tree = *build({"k1", "k2"}, 1);
  EXPECT_EQ(node(node(tree.root).children()[0].child).files(), (std::vector<DataFile>{{"", "d/b"}}));
}

TEST_F(TreeTest, DropsWhatTheKeysOfANodeShare) {
  const BuiltTree tree = *build({"x/a/1", "x/a/2", "x/b/1", "x/b/2", "x/c", "y"}, 90);
  EXPECT_EQ(tree.height, 2);
  const BtreeNode root = node(tree.root);
  ASSERT_EQ(root.children().size(), 2u);
  EXPECT_EQ(root.children()[0].key, "x/a/1");
  EXPECT_EQ(root.children()[0].subtree_prefix_length, 2u);
  const BtreeNode below = node(root.children()[0].child);
  EXPECT_EQ(below.children()[1].key, "b/1");
  EXPECT_EQ(below.children()[1].subtree_prefix_length, 2u);
  EXPECT_EQ(node(below.children()[1].child).leaves()[1].key, "2");
  EXPECT_EQ(root.children()[0].statistics.num_keys, 4u);
  EXPECT_EQ(tree.statistics.num_keys, 6u);
  EXPECT_EQ(tree.statistics.num_tree_bytes, file_.size());
  EXPECT_EQ(tree.statistics.num_indirect_value_bytes, 60u);
}

TEST_F(TreeTest, EndsWithTheSmallestLimitToo) {
  std::vector<std::string> keys;
  for (int i = 100; i < 165; ++i) keys.push_back(std::to_string(i));
  const BuiltTree tree = *build(keys, 1);
  EXPECT_EQ(tree.height, 7);
  EXPECT_EQ(tree.statistics.num_keys, 65u);
}

TEST_F(TreeTest, IsOneNodeWithoutALimit) {
  const BuiltTree tree = *build({"a", "b", "c"}, 0);
  EXPECT_EQ(tree.height, 0);
}

TEST_F(TreeTest, HasNoRootWithoutKeys) {
  const BuiltTree tree = *build({}, 1000);
  EXPECT_TRUE(tree.root.is_missing());
  EXPECT_TRUE(file_.empty());
}

TEST_F(TreeTest, StopsWhenANodeCannotBeStored) {
  TreeBuilder builder({{"", "d/a"}}, {"", "d/nodes"}, 1, std::nullopt,
                      [](ByteSpan) -> Result<uint64_t> { return fail(ErrorKind::kIo, "full"); });
  const auto result = builder.build(2, [](size_t i) { return LeafEntry{.key = i == 0 ? "a" : "b"}; });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kIo);
}

}  // namespace
}  // namespace maxport::ocdbt
