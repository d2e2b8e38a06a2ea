#include "storage/memory_storage.h"

#include <gtest/gtest.h>

namespace maxport {
namespace {

TEST(MemoryStorage, LosesWhatWasNotSyncedWithThePower) {
  MemoryStorage storage;
  ASSERT_TRUE(storage.make_directories("d"));
  ASSERT_TRUE(storage.sync_directory("/"));
  const auto file = *storage.create("d/a");
  ASSERT_TRUE(file->write_at(0, as_bytes("old")));
  EXPECT_EQ(*storage.after_power_loss()->kind("d/a"), std::nullopt);

  ASSERT_TRUE(storage.sync_directory("d"));
  EXPECT_EQ(*storage.after_power_loss()->read_text("d/a"), "");
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->write_at(0, as_bytes("new")));
  EXPECT_EQ(*storage.after_power_loss()->read_text("d/a"), "old");
  EXPECT_EQ(*storage.read_text("d/a"), "new");
}

TEST(MemoryStorage, ForgetsARenameWhoseFolderWasNotSynced) {
  MemoryStorage storage;
  ASSERT_TRUE(storage.write_text("a", "text"));
  ASSERT_TRUE(storage.rename("a", "b"));
  EXPECT_EQ(*storage.after_power_loss()->kind("b"), std::nullopt);
  ASSERT_TRUE(storage.sync_directory("/"));
  EXPECT_EQ(*storage.after_power_loss()->read_text("b"), "text");
  EXPECT_EQ(*storage.after_power_loss()->kind("a"), std::nullopt);
}

TEST(MemoryStorage, MakesWholeFilesDurableWithTheirNames) {
  MemoryStorage storage;
  ASSERT_TRUE(storage.make_directories("d"));
  ASSERT_TRUE(storage.sync_directory("."));
  ASSERT_TRUE(storage.write_text("d/a", "text"));
  EXPECT_EQ(*storage.after_power_loss()->read_text("/d/../d/./a"), "text");
}

}  // namespace
}  // namespace maxport
