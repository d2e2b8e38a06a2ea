// What every Storage promises, held against the machine's file system and the one in memory.
#include "storage/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "storage/memory_storage.h"
#include "storage/temporary_folder.h"

namespace maxport {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StorageTest : public testing::TestWithParam<const char*> {
 protected:
  StorageTest() {
    if (std::string_view(GetParam()) == "local") {
      storage_ = &local_storage();
      root_ = folder_.path();
    } else {
      storage_ = &memory_;
      root_ = "/root";
      EXPECT_TRUE(memory_.make_directories(root_));
    }
  }

  std::string at(std::string_view name) const { return join_path(root_, name); }
  ErrorKind kind_of_failure(const auto& result) { return result ? ErrorKind::kInternal : result.error().kind(); }

  Storage* storage_;
  std::string root_;

 private:
  TemporaryFolder folder_;
  MemoryStorage memory_;
};

INSTANTIATE_TEST_SUITE_P(Everywhere, StorageTest, testing::Values("local", "memory"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(StorageTest, ReadsBackWhatWasWrittenAtAnyOffsetInAnyOrder) {
  auto file = *storage_->create(at("a"));
  EXPECT_EQ(file->path(), at("a"));
  ASSERT_TRUE(file->write_at(6, as_bytes("world")));
  ASSERT_TRUE(file->write_at(0, as_bytes("hello ")));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->close());
  EXPECT_EQ(*storage_->read_text(at("a")), "hello world");

  const auto reader = *storage_->open(at("a"));
  EXPECT_EQ(reader->size(), 11u);
  Bytes part(3);
  ASSERT_TRUE(reader->read_at(6, part));
  EXPECT_EQ(as_text(part), "wor");
}

TEST_P(StorageTest, FillsAHoleWithZeros) {
  auto file = *storage_->create(at("a"));
  ASSERT_TRUE(file->write_at(3, as_bytes("x")));
  EXPECT_EQ(*storage_->read_text(at("a")), std::string_view("\0\0\0x", 4));
}

TEST_P(StorageTest, LetsThreadsWriteDisjointRanges) {
  auto file = *storage_->create(at("a"));
  std::vector<std::thread> threads;
  for (char letter : std::string("abcd"))
    threads.emplace_back([&file, letter] {
      for (int i = 0; i < 100; ++i) {
        const std::string text(10, letter);
        EXPECT_TRUE(file->write_at((letter - 'a') * 1000 + i * 10, as_bytes(text)));
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::string expected;
  for (char letter : std::string("abcd")) expected += std::string(1000, letter);
  EXPECT_EQ(*storage_->read_text(at("a")), expected);
}

TEST_P(StorageTest, SaysWhereAFileEndsThatIsTooShort) {
  ASSERT_TRUE(storage_->write_text(at("a"), "12345"));
  const auto file = *storage_->open(at("a"));
  Bytes out(4);
  for (uint64_t offset : {uint64_t{2}, uint64_t{5}, uint64_t{7}}) {
    const auto result = file->read_at(offset, out);
    ASSERT_FALSE(result) << offset;
    EXPECT_EQ(result.error().kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(result.error().message(), HasSubstr(at("a")));
    EXPECT_THAT(result.error().message(), HasSubstr("ends at byte 5"));
  }
  EXPECT_FALSE(file->read_at(UINT64_MAX - 1, out));
}

TEST_P(StorageTest, EmptiesAnExistingFileUnlessToldNotTo) {
  ASSERT_TRUE(storage_->write_text(at("a"), "12345"));
  ASSERT_TRUE((*storage_->create(at("a"), false))->write_at(1, as_bytes("x")));
  EXPECT_EQ(*storage_->read_text(at("a")), "1x345");
  ASSERT_TRUE(storage_->create(at("a")));
  EXPECT_EQ(*storage_->read_text(at("a")), "");
}

TEST_P(StorageTest, RefusesToWriteAFileThatWasClosed) {
  auto file = *storage_->create(at("a"));
  ASSERT_TRUE(file->close());
  EXPECT_EQ(kind_of_failure(file->close()), ErrorKind::kInternal);
  EXPECT_FALSE(file->write_at(0, as_bytes("x")));
  EXPECT_FALSE(file->sync());
}

TEST_P(StorageTest, SaysThatAFileIsMissing) {
  const auto result = storage_->open(at("missing"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(result.error().message(), "opening " + at("missing") + ": No such file or directory");
  EXPECT_EQ(kind_of_failure(storage_->create(at("no/folder"))), ErrorKind::kNotFound);
  EXPECT_EQ(kind_of_failure(storage_->list(at("missing"))), ErrorKind::kNotFound);
  EXPECT_EQ(kind_of_failure(storage_->sync_directory(at("missing"))), ErrorKind::kNotFound);
}

TEST_P(StorageTest, RefusesPathsThatAreEmptyOrHoldNul) {
  for (const std::string& path : {std::string(), at(std::string("a\0b", 3))}) {
    EXPECT_EQ(kind_of_failure(storage_->open(path)), ErrorKind::kInvalidArgument);
    EXPECT_EQ(kind_of_failure(storage_->create(path)), ErrorKind::kInvalidArgument);
    EXPECT_EQ(kind_of_failure(storage_->remove_all(path)), ErrorKind::kInvalidArgument);
    EXPECT_EQ(kind_of_failure(storage_->make_directories(path)), ErrorKind::kInvalidArgument);
    EXPECT_EQ(kind_of_failure(storage_->rename(path, at("b"))), ErrorKind::kInvalidArgument);
    EXPECT_EQ(kind_of_failure(storage_->kind(path)), ErrorKind::kInvalidArgument);
    EXPECT_EQ(kind_of_failure(storage_->list(path)), ErrorKind::kInvalidArgument);
  }
}

TEST_P(StorageTest, RefusesToOpenOrCreateAFolderAsAFile) {
  ASSERT_TRUE(storage_->make_directories(at("d")));
  EXPECT_EQ(kind_of_failure(storage_->open(at("d"))), ErrorKind::kInvalidArgument);
  EXPECT_EQ(kind_of_failure(storage_->create(at("d"))), ErrorKind::kInvalidArgument);
}

TEST_P(StorageTest, ListsAFolderInByteOrder) {
  ASSERT_TRUE(storage_->make_directories(at("b/c")));
  for (const char* name : {"z", "B", "\xc3\xa4"}) ASSERT_TRUE(storage_->write_text(at(name), ""));
  std::vector<std::string> names;
  const auto entries = *storage_->list(root_);
  for (const DirectoryEntry& entry : entries) {
    names.push_back(entry.name);
    EXPECT_EQ(entry.kind, entry.name == "b" ? EntryKind::kDirectory : EntryKind::kFile);
  }
  EXPECT_THAT(names, ElementsAre("B", "b", "z", "\xc3\xa4"));
}

TEST_P(StorageTest, TellsFilesFromFoldersFromNothing) {
  ASSERT_TRUE(storage_->make_directories(at("d")));
  ASSERT_TRUE(storage_->write_text(at("f"), ""));
  EXPECT_EQ(*storage_->kind(at("d")), EntryKind::kDirectory);
  EXPECT_EQ(*storage_->kind(at("f")), EntryKind::kFile);
  EXPECT_EQ(*storage_->kind(at("x")), std::nullopt);
  EXPECT_EQ(*storage_->kind(at("f/x")), std::nullopt);
}

TEST_P(StorageTest, MakesFoldersOnceAndAgain) {
  EXPECT_TRUE(storage_->make_directories(at("a/b/c")));
  EXPECT_TRUE(storage_->make_directories(at("a/b/c/")));
  ASSERT_TRUE(storage_->write_text(at("a/f"), ""));
  EXPECT_FALSE(storage_->make_directories(at("a/f/x")));
}

TEST_P(StorageTest, RenamesFilesAndFoldersButNeverOverAnother) {
  ASSERT_TRUE(storage_->make_directories(at("a/b")));
  ASSERT_TRUE(storage_->write_text(at("a/b/f"), "1"));
  ASSERT_TRUE(storage_->rename(at("a"), at("c")));
  EXPECT_EQ(*storage_->read_text(at("c/b/f")), "1");
  EXPECT_EQ(*storage_->kind(at("a")), std::nullopt);

  ASSERT_TRUE(storage_->write_text(at("g"), "2"));
  ASSERT_TRUE(storage_->make_directories(at("empty")));
  for (const auto& [from, to] : {std::pair("g", "c/b/f"), {"g", "empty"}, {"c", "empty"}, {"c", "g"}}) {
    const auto result = storage_->rename(at(from), at(to));
    ASSERT_FALSE(result) << from << " to " << to;
    EXPECT_EQ(result.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(result.error().message(), HasSubstr(at(to)));
  }
  EXPECT_EQ(*storage_->read_text(at("c/b/f")), "1");
  EXPECT_EQ(*storage_->read_text(at("g")), "2");
  EXPECT_FALSE(storage_->rename(at("c"), at("c/b/x")));
  EXPECT_EQ(*storage_->kind(at("c/b/x")), std::nullopt);
  EXPECT_EQ(kind_of_failure(storage_->rename(at("missing"), at("m"))), ErrorKind::kNotFound);
}

TEST_P(StorageTest, RemovesWhateverIsThereAndIsContentWithNothing) {
  ASSERT_TRUE(storage_->make_directories(at("a/b")));
  ASSERT_TRUE(storage_->write_text(at("a/b/f"), "1"));
  EXPECT_TRUE(storage_->remove_all(at("a")));
  EXPECT_EQ(*storage_->kind(at("a")), std::nullopt);
  EXPECT_TRUE(storage_->remove_all(at("a")));
}

TEST_P(StorageTest, CapsWholeFilesReadAsText) {
  ASSERT_TRUE(storage_->write_text(at("a"), "12345"));
  EXPECT_EQ(*storage_->read_text(at("a"), 5), "12345");
  EXPECT_EQ(kind_of_failure(storage_->read_text(at("a"), 4)), ErrorKind::kResourceLimit);
}

TEST_P(StorageTest, StampsTellThatAFileWasChangedOrReplaced) {
  ASSERT_TRUE(storage_->write_text(at("a"), "12345"));
  const auto file = *storage_->open(at("a"));
  const FileStamp before = *file->stamp();
  EXPECT_EQ(before.size, 5u);
  EXPECT_EQ(*file->stamp(), before);
  ASSERT_TRUE((*storage_->create(at("a"), false))->write_at(5, as_bytes("6")));
  EXPECT_NE(*file->stamp(), before);

  const FileStamp grown = *file->stamp();
  ASSERT_TRUE(storage_->rename(at("a"), at("old")));
  EXPECT_EQ(kind_of_failure(file->stamp()), ErrorKind::kNotFound);
  ASSERT_TRUE(storage_->write_text(at("a"), "123456"));
  EXPECT_NE(file->stamp()->inode, grown.inode);
}

TEST(Paths, JoinWithOneSlash) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a//", "/b"), "a/b");
  EXPECT_EQ(join_path("/", "b"), "/b");
  EXPECT_EQ(join_path("", "b"), "b");
}

TEST(Paths, HaveAParent) {
  EXPECT_EQ(parent_path("a/b"), "a");
  EXPECT_EQ(parent_path("a/b/"), "a");
  EXPECT_EQ(parent_path("a"), ".");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("/"), "/");
}

}  // namespace
}  // namespace maxport
