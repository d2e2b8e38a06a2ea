#include "orbax/checkpoint_path.h"

#include <gmock/gmock.h>

#include "storage/memory_storage.h"

namespace maxport::orbax {
namespace {

using testing::HasSubstr;

void put(Storage& storage, const std::string& path) {
  ASSERT_TRUE(storage.make_directories(parent_path(path)));
  ASSERT_TRUE(storage.write_text(path, "{}"));
}

TEST(StepNumber, ReadsStepNamesOnly) {
  EXPECT_EQ(step_number("0"), 0);
  EXPECT_EQ(step_number("000120"), 120);
  EXPECT_EQ(step_number("step_7"), 7);
  EXPECT_EQ(step_number("my_step_7"), 7);
  for (const char* name : {"", "items", "1.0", "-1", "7.orbax-checkpoint-tmp", "step_", "1x", "99999999999999999999"})
    EXPECT_EQ(step_number(name), std::nullopt) << name;
}

TEST(ResolveCheckpoint, TakesTheLatestFinishedStepAndItsItem) {
  MemoryStorage storage;
  for (const char* step : {"ckpt/0", "ckpt/10", "ckpt/9", "ckpt/11.orbax-checkpoint-tmp"}) {
    put(storage, std::string(step) + "/_CHECKPOINT_METADATA");
    put(storage, std::string(step) + "/items/_METADATA");
  }
  put(storage, "ckpt/10/iter/process_0.json");
  for (const auto& [path, item_directory] :
       {std::pair{"ckpt", "ckpt/10/items"}, {"ckpt/", "ckpt/10/items"}, {"ckpt/9", "ckpt/9/items"}, {"ckpt/9/items/", "ckpt/9/items"}}) {
    auto found = resolve_checkpoint(storage, path);
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(found->item_directory, item_directory);
    EXPECT_EQ(found->item, "items");
    EXPECT_EQ(found->step, std::string(item_directory).contains("10") ? 10 : 9);
    EXPECT_THAT(found->items, testing::ElementsAre("items"));
  }
  EXPECT_EQ(resolve_checkpoint(storage, "ckpt", 0)->step_directory, "ckpt/0");
  EXPECT_THAT(resolve_checkpoint(storage, "ckpt", 5).error().message(), HasSubstr("ckpt has no step 5; its steps: 0, 9, 10"));
}

TEST(ResolveCheckpoint, TakesItemsWithoutStepsAndStepsThatAreItems) {
  MemoryStorage storage;
  put(storage, "flat/_METADATA");
  put(storage, "flat/_CHECKPOINT_METADATA");
  put(storage, "bare/manifest.ocdbt");
  put(storage, "arrays/params.x/zarr.json");
  put(storage, "v1/orbax.checkpoint");
  put(storage, "v1/state/_METADATA");
  put(storage, "root/3/_METADATA");
  EXPECT_EQ(resolve_checkpoint(storage, "flat")->step_directory, "flat");
  EXPECT_EQ(resolve_checkpoint(storage, "bare")->step_directory, "");
  EXPECT_EQ(resolve_checkpoint(storage, "arrays")->item_directory, "arrays");
  EXPECT_EQ(resolve_checkpoint(storage, "v1")->item_directory, "v1/state");
  EXPECT_EQ(resolve_checkpoint(storage, "root")->item_directory, "root/3");
}

TEST(ResolveCheckpoint, AsksWhichOfSeveralItems) {
  MemoryStorage storage;
  for (const char* item : {"model", "optimizer"}) put(storage, std::string("0/") + item + "/_METADATA");
  auto found = resolve_checkpoint(storage, "0");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(found.error().message(), HasSubstr("several items: model, optimizer; say which one"));
  EXPECT_EQ(resolve_checkpoint(storage, "0", {}, "optimizer")->item_directory, "0/optimizer");
  EXPECT_THAT(resolve_checkpoint(storage, "0", {}, "x").error().message(), HasSubstr("no item \"x\"; its items: model, optimizer"));
  put(storage, "0/default/_METADATA");
  EXPECT_EQ(resolve_checkpoint(storage, "0")->item, "default");
}

TEST(ResolveCheckpoint, SaysWhatIsThereInstead) {
  MemoryStorage storage;
  put(storage, "tmp/0.orbax-checkpoint-tmp/items/_METADATA");
  put(storage, "old/0.orbax-checkpoint-tmp-1700000000/items/_METADATA");
  put(storage, "other/config.json");
  put(storage, "empty/0/commit_success.txt");
  struct Case {
    const char* path;
    ErrorKind kind;
    const char* text;
  };
  for (const Case& c :
       {Case{"tmp", ErrorKind::kNotFound, "holds no finished checkpoint; 0.orbax-checkpoint-tmp was not committed"},
        Case{"old", ErrorKind::kNotFound, "holds no finished checkpoint"},
        Case{"tmp/0.orbax-checkpoint-tmp", ErrorKind::kInvalidArgument, "was not committed"},
        Case{"tmp/0.orbax-checkpoint-tmp/items", ErrorKind::kInvalidArgument, "was not committed"},
        Case{"other", ErrorKind::kNotFound, "holds no Orbax checkpoint; it holds: config.json"},
        Case{"empty", ErrorKind::kNotFound, "empty/0 holds no Orbax checkpoint; it holds: commit_success.txt"},
        Case{"none", ErrorKind::kNotFound, "none is not there"},
        Case{"other/config.json", ErrorKind::kNotFound, "is not a directory"}}) {
    auto found = resolve_checkpoint(storage, c.path);
    ASSERT_FALSE(found) << c.path;
    EXPECT_EQ(found.error().kind(), c.kind) << found.error().message();
    EXPECT_THAT(found.error().message(), HasSubstr(c.text));
  }
}

}  // namespace
}  // namespace maxport::orbax
