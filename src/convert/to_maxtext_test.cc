#include "convert/to_maxtext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/journal.h"
#include "convert/testing.h"
#include "orbax/checkpoint.h"
#include "storage/faulty_storage.h"

namespace maxport::convert {
namespace {

using ::testing::HasSubstr;
using namespace testing;

std::map<std::string, std::string> undisturbed(const ModelSource& source, const ToMaxtextOptions& wanted) {
  MemoryStorage storage;
  auto report = convert(storage, source, wanted);
  EXPECT_TRUE(report) << report.error().message();
  return files(storage, "out");
}

TEST(ToMaxtext, WritesTheSameBytesForAnyThreadsMemoryAndRun) {
  const auto source = open_model();
  ToMaxtextOptions first = options();
  const auto want = undisturbed(*source, first);
  EXPECT_GT(want.size(), 5u);
  for (int threads : {2, 3, 8}) {
    first.threads = threads;
    EXPECT_EQ(undisturbed(*source, first), want) << threads;
  }
  first.threads = 2;
  first.max_memory = engine::kProcessBytes + (uint64_t{4} << 20);
  EXPECT_EQ(undisturbed(*source, first), want);
  first.sync = false;
  EXPECT_EQ(undisturbed(*source, first), want);
}

TEST(ToMaxtext, RecordsADigestOfEveryLeaf) {
  const auto source = open_model();
  const auto written = undisturbed(*source, options());
  auto record = parse_json(written.at("out/0/maxport.json"), "record");
  ASSERT_TRUE(record);
  EXPECT_EQ((*record)["leaves"].size(), source->plan().leaves.size());
  std::set<std::string> digests;
  for (const auto& [name, leaf] : (*record)["leaves"].items()) digests.insert(leaf["digest"].get<std::string>());
  EXPECT_EQ(digests.size(), source->plan().leaves.size());
  EXPECT_EQ((*record)["source_config"], source->directory().config());
}

// Each change to the file system in turn is the last one that succeeds, as if the process had been killed or the disk had
// filled up after it; then the same conversion runs again.
TEST(ToMaxtext, ResumesToTheSameBytesAfterAFailureAtAnyMoment) {
  const auto source = open_model();
  for (bool ocdbt : {true, false}) {
    ToMaxtextOptions wanted = options();
    wanted.use_ocdbt = ocdbt;
    const auto want = undisturbed(*source, wanted);
    size_t failures = 0;
    for (uint64_t step = 0;; ++step) {
      MemoryStorage disk;
      FaultyStorage faulty(disk);
      faulty.stop_changes_after(step, step % 2 ? ENOSPC : EIO);
      auto report = convert(faulty, *source, wanted);
      if (report) break;
      ++failures;
      ASSERT_NE(report.error().kind(), ErrorKind::kInternal) << report.error().message();
      // Under the final name there is nothing, or everything.
      const auto published = files(disk, "out/0");
      if (!published.empty()) {
        for (const auto& [path, text] : published) ASSERT_EQ(text, want.at(path)) << "after change " << step;
        continue;
      }
      auto again = convert(disk, *source, wanted);
      ASSERT_TRUE(again) << "after change " << step << ": " << again.error().message();
      ASSERT_EQ(files(disk, "out"), want) << "after change " << step;
    }
    EXPECT_GT(failures, 20u);
  }
}

TEST(ToMaxtext, NamesPathAndCauseOfWriteErrors) {
  const auto source = open_model();
  for (const auto& [operation, part] : {std::pair{Operation::kWrite, "/d/"}, {Operation::kSync, "_METADATA"},
                                        {Operation::kRename, "out/0"}, {Operation::kCreate, "manifest.ocdbt"}}) {
    MemoryStorage disk;
    FaultyStorage faulty(disk);
    faulty.add({operation, 1, ENOSPC, part, true, 7});
    auto report = convert(faulty, *source, options());
    ASSERT_FALSE(report) << part;
    EXPECT_THAT(report.error().message(), HasSubstr(part));
    EXPECT_THAT(report.error().message(), HasSubstr("No space left on device"));
    EXPECT_TRUE(files(disk, "out/0").empty());
    EXPECT_TRUE(convert(disk, *source, options()));
  }
}

/// Leaves a conversion that lacks nothing but its last rename.
void stop_before_publishing(MemoryStorage& disk, const ModelSource& source) {
  FaultyStorage faulty(disk);
  faulty.add({Operation::kRename, 1, EIO, "out/0"});
  ASSERT_FALSE(convert(faulty, source, options()));
}

TEST(ToMaxtext, ContinuesOnlyTheSameConversion) {
  const auto source = open_model();
  MemoryStorage disk;
  stop_before_publishing(disk, *source);
  ToMaxtextOptions other = options();
  other.save_dtype = DType::kFloat32;
  auto refused = convert(disk, *source, other);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("save_dtype: \"bfloat16\" before, \"float32\" now"));
  auto resumed = convert(disk, *source, options());
  ASSERT_TRUE(resumed);
  EXPECT_EQ(resumed->segments_resumed, resumed->segments);
  other.overwrite = true;
  EXPECT_TRUE(convert(disk, *source, other));
  EXPECT_EQ(files(disk, "out"), undisturbed(*source, [&] { auto o = other; o.overwrite = false; return o; }()));
}

TEST(ToMaxtext, ContinuesOnlyWithTheSameChunks) {
  const auto source = open_model();
  MemoryStorage disk;
  stop_before_publishing(disk, *source);
  const std::string path = "out/0.orbax-checkpoint-tmp.maxport-journal", text = files(disk, "out")[path];
  Json identity = Json::parse(text.substr(9, text.find('\n') - 9));
  identity["chunks"] = "others";
  ASSERT_TRUE(disk.remove_all(path));
  ASSERT_TRUE(Journal::create(disk, path, identity, false));
  const auto refused = convert(disk, *source, options());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("\n  chunks: \"others\" before"));
}

TEST(ToMaxtext, NeverReplacesAFinishedCheckpointUnasked) {
  const auto source = open_model();
  MemoryStorage disk;
  ASSERT_TRUE(convert(disk, *source, options()));
  auto again = convert(disk, *source, options());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(again.error().message(), HasSubstr("--overwrite"));
}

TEST(ToMaxtext, RefusesATemporaryFolderOfAnotherProgram) {
  const auto source = open_model();
  MemoryStorage disk;
  ASSERT_TRUE(disk.make_directories("out/0.orbax-checkpoint-tmp/items"));
  auto refused = convert(disk, *source, options());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("another program"));
}

TEST(ToMaxtext, RefusesBloscWithoutZarr3AndADiskThatIsTooSmall) {
  const auto source = open_model();
  MemoryStorage disk;
  ToMaxtextOptions wanted = options();
  wanted.use_zarr3 = false;
  EXPECT_FALSE(convert(disk, *source, wanted));
  FaultyStorage faulty(disk);
  faulty.set_free_bytes(1000);
  auto full = convert(faulty, *source, options());
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind(), ErrorKind::kResourceLimit);
  EXPECT_TRUE(files(disk, "out").empty());
}

TEST(ToMaxtext, SaysHowMuchMemoryIsNeeded) {
  const auto source = open_model();
  MemoryStorage disk;
  ToMaxtextOptions wanted = options();
  wanted.max_memory = 1;
  auto report = convert(disk, *source, wanted);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind(), ErrorKind::kResourceLimit);
  EXPECT_THAT(report.error().message(), HasSubstr("--max_memory="));
}

TEST(ToMaxtext, StopsBetweenChunksWhenAsked) {
  const auto source = open_model();
  MemoryStorage disk;
  ToMaxtextOptions wanted = options();
  wanted.cancelled = [count = std::make_shared<int>(0)] { return ++*count > 4; };
  auto report = convert(disk, *source, wanted);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind(), ErrorKind::kInterrupted);
  EXPECT_TRUE(files(disk, "out/0").empty());
  EXPECT_TRUE(convert(disk, *source, options()));
}

}  // namespace
}  // namespace maxport::convert
