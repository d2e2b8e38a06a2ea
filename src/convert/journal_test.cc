#include "convert/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/memory_storage.h"

namespace maxport::convert {
namespace {

engine::SegmentResult segment(uint64_t index) {
  engine::SegmentResult out;
  out.record = {index, fmt::format("d/{}", index), 100, {{"a/c/0", 0, 60}, {"a/c/1", 60, 40}}};
  out.record.values.push_back({"a/zarr.json", 0, 2, Bytes{std::byte{'{'}, std::byte{'}'}}});
  out.digests = {UINT64_MAX, 7};
  return out;
}

const Identity kIdentity = {{"plan", "1234"}, {"save_dtype", "bfloat16"}};

TEST(Journal, GivesBackTheSegmentsOfAnEarlierRun) {
  auto storage = std::make_unique<MemoryStorage>();
  {
    auto journal = Journal::create(*storage, "j", kIdentity, true);
    ASSERT_TRUE(journal) << journal.error().message();
    ASSERT_TRUE((*journal)->append(segment(3)));
    ASSERT_TRUE((*journal)->append(segment(1)));
  }
  auto journal = Journal::resume(*storage, "j", kIdentity, true);
  ASSERT_TRUE(journal) << journal.error().message();
  auto finished = (*journal)->take_finished();
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[0].record.index, 3u);
  EXPECT_EQ(finished[0].record.values[1].key, "a/c/1");
  EXPECT_EQ(finished[0].record.values[1].offset, 60u);
  EXPECT_EQ(as_text(*finished[0].record.values[2].inline_value), "{}");
  EXPECT_EQ(finished[0].digests, (std::vector<uint64_t>{UINT64_MAX, 7}));
}

TEST(Journal, ForgetsALineThatACrashCut) {
  auto storage = std::make_unique<MemoryStorage>();
  {
    auto journal = Journal::create(*storage, "j", kIdentity, true);
    ASSERT_TRUE((*journal)->append(segment(0)));
    ASSERT_TRUE((*journal)->append(segment(1)));
  }
  const std::string text = *storage->read_text("j");
  const size_t second = text.find('\n', text.find('\n') + 1) + 1;
  for (size_t cut = second; cut < text.size(); cut += 7) {
    ASSERT_TRUE(storage->write_text("j", text.substr(0, cut)));
    auto journal = Journal::resume(*storage, "j", kIdentity, true);
    ASSERT_TRUE(journal);
    EXPECT_EQ((*journal)->take_finished().size(), 1u) << cut;
    ASSERT_TRUE((*journal)->append(segment(1)));
    auto again = Journal::resume(*storage, "j", kIdentity, true);
    EXPECT_EQ((*again)->take_finished().size(), 2u) << cut;
  }
}

TEST(Journal, SaysWhatDiffers) {
  auto storage = std::make_unique<MemoryStorage>();
  ASSERT_TRUE(Journal::create(*storage, "j", kIdentity, true));
  Identity other = kIdentity;
  other["save_dtype"] = "float32";
  auto journal = Journal::resume(*storage, "j", other, true);
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message(), testing::HasSubstr("save_dtype: \"bfloat16\" before, \"float32\" now"));
  EXPECT_THAT(journal.error().message(), testing::HasSubstr("--overwrite"));
  EXPECT_THAT(journal.error().message(), testing::Not(testing::HasSubstr("plan:")));
}

TEST(Journal, RefusesAJournalWithoutAnIdentity) {
  auto storage = std::make_unique<MemoryStorage>();
  ASSERT_TRUE(storage->write_text("j", "nonsense\n"));
  EXPECT_EQ(Journal::resume(*storage, "j", kIdentity, true).error().kind(), ErrorKind::kCorruptData);
}

}  // namespace
}  // namespace maxport::convert
