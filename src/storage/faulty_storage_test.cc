#include "storage/faulty_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "storage/memory_storage.h"

namespace maxport {
namespace {

using testing::HasSubstr;

TEST(FaultyStorage, FailsTheNthOperationOnly) {
  MemoryStorage memory;
  FaultyStorage storage(memory);
  storage.add({.operation = Operation::kWrite, .nth = 2, .error_number = ENOSPC});
  const auto file = *storage.create("a");
  EXPECT_TRUE(file->write_at(0, as_bytes("1")));
  const auto result = file->write_at(1, as_bytes("2"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kResourceLimit);
  EXPECT_THAT(result.error().message(), HasSubstr("writing a: No space left on device"));
  EXPECT_TRUE(file->write_at(1, as_bytes("3")));
  EXPECT_EQ(*memory.read_text("a"), "13");
}

TEST(FaultyStorage, WritesAPartBeforeItFailsAndStaysFull) {
  MemoryStorage memory;
  FaultyStorage storage(memory);
  storage.add({.nth = 1, .error_number = ENOSPC, .from_then_on = true, .bytes_before = 2});
  const auto file = *storage.create("a");
  EXPECT_FALSE(file->write_at(0, as_bytes("123")));
  EXPECT_FALSE(file->write_at(2, as_bytes("3")));
  EXPECT_EQ(*memory.read_text("a"), "12");
  storage.clear_faults();
  EXPECT_TRUE(file->write_at(2, as_bytes("3")));
}

TEST(FaultyStorage, FailsEveryKindOfOperation) {
  for (const Operation operation :
       {Operation::kOpen, Operation::kCreate, Operation::kRead, Operation::kWrite, Operation::kSync, Operation::kClose,
        Operation::kRename, Operation::kMakeDirectories, Operation::kRemove, Operation::kSyncDirectory,
        Operation::kList, Operation::kKind}) {
    MemoryStorage memory;
    ASSERT_TRUE(memory.write_text("a", "1"));
    FaultyStorage storage(memory);
    storage.add({.operation = operation, .error_number = EACCES});
    int failures = 0;
    const auto count = [&failures](const auto& result) { failures += result ? 0 : 1; };
    if (const auto read = storage.open("a")) {
      Bytes out(1);
      count((*read)->read_at(0, out));
    } else {
      count(read);
    }
    if (const auto written = storage.create("b")) {
      count((*written)->write_at(0, as_bytes("x")));
      count((*written)->sync());
      count((*written)->close());
    } else {
      count(written);
    }
    count(storage.make_directories("d"));
    count(storage.rename("a", "c"));
    count(storage.remove_all("a"));
    count(storage.sync_directory("/"));
    count(storage.list("/"));
    count(storage.kind("/"));
    EXPECT_EQ(failures, 1) << static_cast<int>(operation);
  }
}

TEST(FaultyStorage, StopsEveryChangeAfterACrash) {
  MemoryStorage memory;
  FaultyStorage storage(memory);
  storage.stop_changes_after(2);
  const auto file = *storage.create("a");
  EXPECT_TRUE(file->write_at(0, as_bytes("1")));
  EXPECT_FALSE(file->sync());
  EXPECT_FALSE(storage.make_directories("d"));
  EXPECT_FALSE(storage.remove_all("a"));
  EXPECT_TRUE(storage.open("a"));
  EXPECT_EQ(storage.changes(), 2u);
}

TEST(FaultyStorage, RecordsWhatSucceededInOrder) {
  MemoryStorage memory;
  FaultyStorage storage(memory);
  storage.add({.operation = Operation::kSync, .path_part = "b"});
  EXPECT_TRUE(storage.write_text("a", "1"));
  EXPECT_FALSE(storage.write_text("b", "1"));
  std::vector<std::pair<Operation, std::string>> records;
  for (const auto& record : storage.records()) records.emplace_back(record.operation, record.path);
  EXPECT_THAT(records, testing::ElementsAre(std::pair(Operation::kCreate, "a"), std::pair(Operation::kWrite, "a"),
                                            std::pair(Operation::kSync, "a"), std::pair(Operation::kClose, "a"),
                                            std::pair(Operation::kSyncDirectory, "."),
                                            std::pair(Operation::kCreate, "b"), std::pair(Operation::kWrite, "b")));
}

TEST(FaultyStorage, CountsRightWhenThreadsShareIt) {
  MemoryStorage memory;
  FaultyStorage storage(memory);
  storage.add({.operation = Operation::kWrite, .nth = 100});
  const auto file = *storage.create("a");
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) failures += file->write_at(0, as_bytes("x")) ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(storage.changes(), 200u);
}

TEST(FaultyStorage, AnswersWithTheFreeSpaceItWasGiven) {
  MemoryStorage memory;
  FaultyStorage storage(memory);
  EXPECT_EQ(*storage.free_bytes("/"), std::nullopt);
  storage.set_free_bytes(7);
  EXPECT_EQ(*storage.free_bytes("/"), 7u);
}

}  // namespace
}  // namespace maxport
