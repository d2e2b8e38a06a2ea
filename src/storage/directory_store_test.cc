#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/faulty_storage.h"
#include "storage/key_value_store.h"
#include "storage/memory_storage.h"
#include "storage/temporary_folder.h"

namespace maxport {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> keys(KeyValueReader& reader, std::string_view prefix) {
  std::vector<std::string> found;
  EXPECT_TRUE(reader.list(prefix, [&](std::string_view key, const ValueLocation& where) -> Result<> {
    EXPECT_EQ((*reader.locate(key))->path, where.path);
    found.emplace_back(key);
    return {};
  }));
  return found;
}

void fill(KeyValueWriter& writer, uint64_t index, const std::vector<std::pair<std::string, std::string>>& values) {
  auto segment = *writer.start_segment(index);
  for (const auto& [key, value] : values) ASSERT_TRUE(segment->put(key, as_bytes(value)));
  ASSERT_TRUE(segment->finish(true));
}

class DirectoryStoreTest : public testing::TestWithParam<bool> {
 protected:
  Storage& storage() { return GetParam() ? local_storage() : memory_; }
  std::string root() { return GetParam() ? folder_ / "store" : "store"; }

 private:
  TemporaryFolder folder_;
  MemoryStorage memory_;
};

INSTANTIATE_TEST_SUITE_P(Everywhere, DirectoryStoreTest, testing::Bool(),
                         [](const auto& one) { return one.param ? "local" : "memory"; });

TEST_P(DirectoryStoreTest, KeepsEachValueInAFileOfItsOwn) {
  const auto writer = create_directory_store(storage(), root() + "/");
  fill(*writer, 0, {{"x/c/0", "zero"}, {"x/zarr.json", "{}"}});
  fill(*writer, 1, {{"x/c/1", ""}});
  ASSERT_TRUE(writer->finish(true));
  EXPECT_EQ(*storage().read_text(join_path(root(), "x/c/0")), "zero");

  const auto reader = open_directory_store(storage(), root());
  EXPECT_EQ(as_text(**reader->read("x/c/0")), "zero");
  EXPECT_EQ(as_text(**reader->read("x/c/1")), "");
  EXPECT_EQ(*reader->read("x/c/2"), std::nullopt);
  EXPECT_EQ(*reader->read("x/c"), std::nullopt);
  EXPECT_EQ(as_text(*reader->read_range("x/c/0", 1, 2)), "er");
  const auto where = **reader->locate("x/c/0");
  EXPECT_EQ(where.path, join_path(root(), "x/c/0"));
  EXPECT_EQ(where.length, 4u);
}

TEST_P(DirectoryStoreTest, ListsKeysInByteOrder) {
  const auto writer = create_directory_store(storage(), root());
  fill(*writer, 0, {{"a/z", "1"}, {"a.b/z", "2"}, {"a/c/10", "3"}, {"a/c/2", "4"}, {"ab", "5"}, {"b", "6"}});
  const auto reader = open_directory_store(storage(), root());
  EXPECT_THAT(keys(*reader, ""), ElementsAre("a.b/z", "a/c/10", "a/c/2", "a/z", "ab", "b"));
  EXPECT_THAT(keys(*reader, "a/"), ElementsAre("a/c/10", "a/c/2", "a/z"));
  EXPECT_THAT(keys(*reader, "a/c/1"), ElementsAre("a/c/10"));
  EXPECT_THAT(keys(*reader, "a"), ElementsAre("a.b/z", "a/c/10", "a/c/2", "a/z", "ab"));
  EXPECT_THAT(keys(*reader, "x"), ElementsAre());
}

TEST_P(DirectoryStoreTest, StopsListingAtTheFirstErrorOfTheVisitor) {
  const auto writer = create_directory_store(storage(), root());
  fill(*writer, 0, {{"a", "1"}, {"b", "2"}});
  int visited = 0;
  const auto result = open_directory_store(storage(), root())->list("", [&](auto, const auto&) -> Result<> {
    ++visited;
    return fail(ErrorKind::kInterrupted, "enough");
  });
  EXPECT_EQ(result.error().kind(), ErrorKind::kInterrupted);
  EXPECT_EQ(visited, 1);
}

TEST_P(DirectoryStoreTest, RefusesKeysThatAreNoFilesOfTheirOwn) {
  const auto writer = create_directory_store(storage(), root());
  const auto segment = *writer->start_segment(0);
  const auto reader = open_directory_store(storage(), root());
  for (const std::string& key :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string(".."),
        std::string("a/../b"), std::string("a/."), std::string("a\\b"), std::string("a\0b", 3)}) {
    const auto put = segment->put(key, as_bytes("x"));
    ASSERT_FALSE(put) << key;
    EXPECT_EQ(put.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_FALSE(reader->read(key)) << key;
    EXPECT_FALSE(reader->locate(key)) << key;
  }
}

TEST_P(DirectoryStoreTest, RefusesKeysAndSegmentsWrittenTwice) {
  const auto writer = create_directory_store(storage(), root());
  fill(*writer, 0, {{"a", "1"}});
  EXPECT_FALSE(writer->start_segment(0));
  const auto put = (*writer->start_segment(1))->put("a", as_bytes("2"));
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().kind(), ErrorKind::kInternal);
  EXPECT_THAT(put.error().message(), HasSubstr("written twice"));
}

TEST_P(DirectoryStoreTest, CapsAndBoundsReads) {
  const auto writer = create_directory_store(storage(), root());
  fill(*writer, 0, {{"a", "12345"}});
  const auto reader = open_directory_store(storage(), root());
  EXPECT_TRUE(reader->read("a", 5));
  EXPECT_EQ(reader->read("a", 4).error().kind(), ErrorKind::kResourceLimit);
  EXPECT_EQ(reader->read_range("a", 3, 3).error().kind(), ErrorKind::kCorruptData);
  EXPECT_EQ(reader->read_range("a", UINT64_MAX, 2).error().kind(), ErrorKind::kCorruptData);
  EXPECT_EQ(reader->read_range("b", 0, 1).error().kind(), ErrorKind::kNotFound);
}

TEST_P(DirectoryStoreTest, AdoptsASegmentThatIsStillThere) {
  SegmentRecord record;
  {
    const auto writer = create_directory_store(storage(), root());
    const auto segment = *writer->start_segment(3);
    ASSERT_TRUE(segment->put("a/b", as_bytes("12345")));
    record = *segment->finish(false);
  }
  EXPECT_EQ(record.index, 3u);
  EXPECT_EQ(record.values.size(), 1u);
  EXPECT_TRUE(create_directory_store(storage(), root())->adopt(record));
  const auto writer = create_directory_store(storage(), root());
  record.values[0].length = 6;
  EXPECT_EQ(writer->adopt(record).error().kind(), ErrorKind::kCorruptData);
  record.values[0].key = "a/c";
  EXPECT_EQ(writer->adopt(record).error().kind(), ErrorKind::kNotFound);
}

TEST(DirectoryStore, SurvivesAPowerLossOnceFinished) {
  MemoryStorage memory;
  const auto writer = create_directory_store(memory, "store");
  fill(*writer, 0, {{"a/b/c", "1"}, {"d", "2"}});
  ASSERT_TRUE(writer->finish(true));
  ASSERT_TRUE(memory.sync_directory("/"));
  const auto after = memory.after_power_loss();
  EXPECT_EQ(*after->read_text("store/a/b/c"), "1");
  EXPECT_EQ(*after->read_text("store/d"), "2");
}

TEST(DirectoryStore, RefusesFoldersWithoutEnd) {
  MemoryStorage memory;
  std::string path = "store";
  for (int i = 0; i < 70; ++i) path += "/a";
  ASSERT_TRUE(memory.make_directories(path));
  const auto result = open_directory_store(memory, "store")->list("", [](auto, const auto&) -> Result<> { return {}; });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kResourceLimit);
}

TEST(DirectoryStore, ReportsAFullDisk) {
  MemoryStorage memory;
  FaultyStorage faulty(memory);
  faulty.add({.operation = Operation::kWrite, .error_number = ENOSPC});
  const auto writer = create_directory_store(faulty, "store");
  const auto put = (*writer->start_segment(0))->put("a", as_bytes("x"));
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().kind(), ErrorKind::kResourceLimit);
}

}  // namespace
}  // namespace maxport
