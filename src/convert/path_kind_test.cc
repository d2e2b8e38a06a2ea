#include "convert/path_kind.h"

#include <gtest/gtest.h>

#include "storage/memory_storage.h"

namespace maxport::convert {
namespace {

class PathKindTest : public ::testing::Test {
 protected:
  void add(const std::string& path) {
    ASSERT_TRUE(disk_.make_directories(parent_path(path)));
    ASSERT_TRUE(disk_.write_text(path, "x"));
  }
  PathKind kind(const std::string& path) {
    auto out = path_kind(disk_, path);
    EXPECT_TRUE(out) << out.error().message();
    return out.value_or(PathKind::kWeightFile);
  }
  MemoryStorage disk_;
};

TEST_F(PathKindTest, TellsModelsFilesAndCheckpointsApart) {
  for (const char* path : {"hf/config.json", "sharded/model.safetensors.index.json", "cached/snapshots/1/config.json", "cached/refs/main",
                           "0/_CHECKPOINT_METADATA", "0/items/_METADATA", "steps/5/items/_METADATA", "plain/a/.zarray"})
    add(path);
  EXPECT_EQ(kind("hf"), PathKind::kModelFolder);
  EXPECT_EQ(kind("sharded"), PathKind::kModelFolder);
  EXPECT_EQ(kind("cached"), PathKind::kModelFolder);
  EXPECT_EQ(kind("sharded/model.safetensors.index.json"), PathKind::kWeightFile);
  for (const char* path : {"0", "0/items", "steps", "plain"}) EXPECT_EQ(kind(path), PathKind::kCheckpoint) << path;
}

TEST_F(PathKindTest, ACheckpointWithAConfigBesideItsDataIsACheckpoint) {
  add("0/_METADATA");
  add("0/config.json");
  EXPECT_EQ(kind("0"), PathKind::kCheckpoint);
}

TEST_F(PathKindTest, SaysWhatIsNotThere) {
  auto out = path_kind(disk_, "nowhere");
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().kind(), ErrorKind::kNotFound);
}

}  // namespace
}  // namespace maxport::convert
