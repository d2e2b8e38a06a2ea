#include "storage/local_storage.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "storage/system_error.h"
#include "storage/temporary_folder.h"

namespace maxport {
namespace {

using testing::HasSubstr;

TEST(TransferAll, GoesOnAfterShortTransfersAndInterruptions) {
  int calls = 0;
  std::vector<size_t> positions;
  const Transfer transfer = transfer_all(10, [&](size_t position, size_t count) -> ssize_t {
    positions.push_back(position);
    if (++calls == 2) {
      errno = EINTR;
      return -1;
    }
    return static_cast<ssize_t>(std::min<size_t>(count, 4));
  });
  EXPECT_EQ(transfer.done, 10u);
  EXPECT_EQ(transfer.error_number, 0);
  EXPECT_THAT(positions, testing::ElementsAre(0, 4, 4, 8));
}

TEST(TransferAll, StopsAtTheEndAndAtErrors) {
  EXPECT_EQ(transfer_all(10, [](size_t position, size_t) -> ssize_t { return position == 0 ? 3 : 0; }).done, 3u);
  const Transfer transfer = transfer_all(10, [](size_t position, size_t) -> ssize_t {
    errno = EIO;
    return position == 0 ? 3 : -1;
  });
  EXPECT_EQ(transfer.done, 3u);
  EXPECT_EQ(transfer.error_number, EIO);
}

TEST(TransferAll, CutsWhatOneCallCannotMove) {
  size_t largest = 0;
  const size_t count = (size_t{5} << 30) + 7;
  const Transfer transfer = transfer_all(count, [&](size_t, size_t step) {
    largest = std::max(largest, step);
    return static_cast<ssize_t>(step);
  });
  EXPECT_EQ(transfer.done, count);
  EXPECT_LT(largest, size_t{0x7ffff000});
}

uint64_t blocks_bytes(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 ? 512 * static_cast<uint64_t>(status.st_blocks) : 0;
}

TEST(LocalStorage, ReservesSpaceWhileWritingAndGivesBackWhatIsLeft) {
  for (const bool sync : {false, true}) {
    TemporaryFolder folder;
    const std::string path = folder / "file";
    const auto file = *local_storage().create(path);
    file->reserve(10'000'000);
    EXPECT_EQ((*local_storage().open(path))->size(), 0u) << "the size stays what was written";
    // The folder may lie where the file system cannot do it.
    const int descriptor = ::open((folder / "other").c_str(), O_WRONLY | O_CREAT, 0600);
    const bool can = ::fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, 4096) == 0;
    ::close(descriptor);
    EXPECT_EQ(blocks_bytes(path) >= 10'000'000, can);
    const Bytes content(1'000'000, std::byte{5});
    ASSERT_TRUE(file->write_at(0, content));
    if (sync) {
      ASSERT_TRUE(file->sync());
    }
    ASSERT_TRUE(file->close());
    EXPECT_LT(blocks_bytes(path), 2'000'000u);
    Bytes back(content.size());
    const auto opened = *local_storage().open(path);
    ASSERT_EQ(opened->size(), content.size());
    ASSERT_TRUE(opened->read_at(0, back));
    EXPECT_EQ(back, content);
  }
}

TEST(LocalStorage, KeepsWhatIsWrittenWhileTheFileIsSynced) {
  constexpr uint64_t kBlocks = 2000;
  TemporaryFolder folder;
  const auto file = *local_storage().create(folder / "file");
  file->reserve(kBlocks * 1000);
  std::atomic<bool> written = false;
  std::thread writer([&] {
    const Bytes block(1000, std::byte{5});
    for (uint64_t i = 0; i < kBlocks; ++i) EXPECT_TRUE(file->write_at(i * block.size(), block));
    written = true;
  });
  while (!written) EXPECT_TRUE(file->sync());
  writer.join();
  ASSERT_TRUE(file->close());
  EXPECT_EQ((*local_storage().open(folder / "file"))->size(), kBlocks * 1000);
  EXPECT_EQ(*local_storage().read_text(folder / "file"), std::string(kBlocks * 1000, 5));
}

TEST(LocalStorage, TakesMoreThanWasReserved) {
  TemporaryFolder folder;
  const auto file = *local_storage().create(folder / "file");
  file->reserve(1000);
  ASSERT_TRUE(file->write_at(0, Bytes(100'000)));
  ASSERT_TRUE(file->close());
  EXPECT_EQ((*local_storage().open(folder / "file"))->size(), 100'000u);
}

TEST(LocalStorage, ReservesNothingThatDoesNotFit) {
  TemporaryFolder folder;
  const auto file = *local_storage().create(folder / "file");
  file->reserve(UINT64_MAX);
  file->reserve(uint64_t{1} << 60);
  ASSERT_TRUE(file->write_at(0, Bytes(10)));
  ASSERT_TRUE(file->close());
}

TEST(LocalStorage, RefusesAFifoWithoutWaitingForItsOtherEnd) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto opened = local_storage().open(folder / "pipe");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(opened.error().message(), HasSubstr("it is a FIFO, expected a regular file"));
  EXPECT_FALSE(local_storage().create(folder / "pipe"));
}

TEST(LocalStorage, RefusesDevices) {
  const auto opened = local_storage().open("/dev/zero");
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(), HasSubstr("it is a device"));
  EXPECT_FALSE(local_storage().create("/dev/null"));
}

TEST(LocalStorage, FollowsLinksAndReportsLoops) {
  TemporaryFolder folder;
  ASSERT_TRUE(local_storage().write_text(folder / "a", "text"));
  ASSERT_EQ(::symlink("a", (folder / "link").c_str()), 0);
  ASSERT_EQ(::symlink("loop", (folder / "loop").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (folder / "dangling").c_str()), 0);
  EXPECT_EQ(*local_storage().read_text(folder / "link"), "text");
  EXPECT_EQ(*local_storage().kind(folder / "link"), EntryKind::kFile);
  EXPECT_EQ(*local_storage().kind(folder / "dangling"), std::nullopt);
  EXPECT_FALSE(local_storage().open(folder / "loop"));
  EXPECT_FALSE(local_storage().kind(folder / "loop"));
  const auto entries = *local_storage().list(folder.path());
  EXPECT_EQ(entries.size(), 4u);
  for (const DirectoryEntry& entry : entries)
    EXPECT_EQ(entry.kind, entry.name == "a" || entry.name == "link" ? EntryKind::kFile : EntryKind::kOther);
}

TEST(LocalStorage, TellsWhereLinksLeadInTheEnd) {
  TemporaryFolder folder;
  ASSERT_TRUE(local_storage().make_directories(folder / "blobs"));
  ASSERT_TRUE(local_storage().write_text(folder / "blobs/a", "text"));
  ASSERT_EQ(::symlink("blobs/a", (folder / "first").c_str()), 0);
  ASSERT_EQ(::symlink("first", (folder / "second").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (folder / "dangling").c_str()), 0);
  EXPECT_EQ(*local_storage().real_path(folder / "second"), *local_storage().real_path(folder / "blobs/a"));
  EXPECT_EQ(local_storage().real_path(folder / "dangling").error().kind(), ErrorKind::kNotFound);
}

TEST(LocalStorage, RemovesALinkButNotWhatItNames) {
  TemporaryFolder folder;
  ASSERT_TRUE(local_storage().make_directories(folder / "kept"));
  ASSERT_TRUE(local_storage().make_directories(folder / "removed"));
  ASSERT_TRUE(local_storage().write_text(folder / "kept/a", "text"));
  ASSERT_EQ(::symlink("../kept", (folder / "removed/link").c_str()), 0);
  ASSERT_TRUE(local_storage().remove_all(folder / "removed"));
  EXPECT_EQ(*local_storage().read_text(folder / "kept/a"), "text");
}

TEST(LocalStorage, ClosesItsDescriptorsAcrossExec) {
  TemporaryFolder folder;
  const auto written = *local_storage().create(folder / "a");
  const auto read = *local_storage().open(folder / "a");
  EXPECT_NE(::fcntl(*written->descriptor(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(*read->descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(LocalStorage, ReportsAFileThatGrowsOverTheLimitAsAResourceLimit) {
  TemporaryFolder folder;
  const auto file = *local_storage().create(folder / "a");
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  // The kernel takes the part that fits, and only the next call fails.
  const auto result = file->write_at(0, Bytes(10000));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kResourceLimit);
  EXPECT_THAT(result.error().message(), HasSubstr("File too large"));
  EXPECT_EQ((*local_storage().open(folder / "a"))->size(), 4096u);
}

TEST(LocalStorage, SaysWhatToDoWhenDescriptorsRunOut) {
  TemporaryFolder folder;
  ASSERT_TRUE(local_storage().write_text(folder / "a", ""));
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit limit{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto result = local_storage().open(folder / "a");
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kResourceLimit);
  EXPECT_THAT(result.error().message(), HasSubstr("ulimit -n"));
}

TEST(LocalStorage, KnowsTheFreeSpaceOfAFolderThatIsStillToBeMade) {
  TemporaryFolder folder;
  const auto free = local_storage().free_bytes(folder / "not/yet/there");
  ASSERT_TRUE(free);
  ASSERT_TRUE(*free);
  EXPECT_GT(**free, 0u);
}

TEST(LocalStorage, SeesThatAFileShrankWhileItWasOpen) {
  TemporaryFolder folder;
  ASSERT_TRUE(local_storage().write_text(folder / "a", "1234567890"));
  const auto file = *local_storage().open(folder / "a");
  ASSERT_EQ(::truncate((folder / "a").c_str(), 4), 0);
  Bytes out(2);
  const auto result = file->read_at(6, out);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("ends at byte 4"));
}

TEST(SystemError, EscapesWhatCouldDriveATerminal) {
  EXPECT_EQ(system_error(ENOENT, "opening", "a\x1b[2J").message(), "opening a\\x1b[2J: No such file or directory");
}

TEST(RenameByClaim, MovesFilesAndFolders) {
  TemporaryFolder folder;
  ASSERT_TRUE(local_storage().write_text(folder / "a", "1"));
  ASSERT_TRUE(rename_by_claim(folder / "a", folder / "b"));
  EXPECT_EQ(*local_storage().read_text(folder / "b"), "1");
  ASSERT_TRUE(local_storage().make_directories(folder / "d/e"));
  ASSERT_TRUE(rename_by_claim(folder / "d", folder / "f"));
  EXPECT_EQ(*local_storage().kind(folder / "f/e"), EntryKind::kDirectory);
  EXPECT_EQ(*local_storage().kind(folder / "d"), std::nullopt);
}

TEST(RenameByClaim, NeverReplacesAndLeavesNoClaimBehind) {
  TemporaryFolder folder;
  ASSERT_TRUE(local_storage().write_text(folder / "a", "1"));
  ASSERT_TRUE(local_storage().write_text(folder / "b", "2"));
  ASSERT_TRUE(local_storage().make_directories(folder / "d"));
  ASSERT_TRUE(local_storage().make_directories(folder / "empty"));
  for (const auto& [from, to] : {std::pair("a", "b"), {"d", "empty"}, {"a", "empty"}, {"d", "a"}}) {
    const auto result = rename_by_claim(folder / from, folder / to);
    ASSERT_FALSE(result) << from << " to " << to;
    EXPECT_EQ(result.error().kind(), ErrorKind::kInvalidArgument);
  }
  EXPECT_EQ(*local_storage().read_text(folder / "b"), "2");
  EXPECT_FALSE(rename_by_claim(folder / "d", folder / "d/inside"));
  EXPECT_TRUE(local_storage().list(folder / "d")->empty());
  EXPECT_FALSE(rename_by_claim(folder / "missing", folder / "c"));
  EXPECT_EQ(*local_storage().kind(folder / "c"), std::nullopt);
}

TEST(LocalStorage, LocksAFolderForOneHolderAtATime) {
  const TemporaryFolder folder;
  auto first = local_storage().lock(folder / "");
  ASSERT_TRUE(first) << first.error().message();
  auto second = local_storage().lock(folder / "");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::kIo);
  EXPECT_THAT(second.error().message(), testing::HasSubstr("another process"));
  first->reset();
  EXPECT_TRUE(local_storage().lock(folder / ""));
}

}  // namespace
}  // namespace maxport
