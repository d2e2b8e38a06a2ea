// A Storage that fails on demand, for tests of full disks, failing devices and crashes.
//
// Passes everything on to another Storage, counts and records it, and lets chosen operations fail with a chosen errno,
// worded as the real file system would. It hides descriptors, so nothing goes around it. Safe for any number of
// threads.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "storage/storage.h"

namespace maxport {

enum class Operation {
  kOpen,
  kCreate,
  kRead,
  kWrite,
  kSync,
  kClose,
  kRename,  ///< recorded with the path that is renamed to
  kMakeDirectories,
  kRemove,
  kSyncDirectory,
  kList,
  kKind,
};

/// True for the operations that leave something behind: all but kOpen, kRead, kClose, kList and kKind.
bool is_change(Operation operation);

struct Fault {
  Operation operation = Operation::kWrite;
  uint64_t nth = 1;  ///< fails at the n-th matching operation, counted from 1 since the fault was added
  int error_number = EIO;
  std::string path_part = {};  ///< only operations on paths that contain this; empty for all
  bool from_then_on = false;   ///< all later ones too, as on a full disk
  uint64_t bytes_before = 0;   ///< kWrite: this many bytes still reach the file
};

class FaultyStorage final : public Storage {
 public:
  explicit FaultyStorage(Storage& base);
  ~FaultyStorage() override;

  void add(Fault fault);
  void clear_faults();
  /// Lets `count` more changes happen and fails every one after them, as for a process that was killed.
  void stop_changes_after(uint64_t count, int error_number = EIO);
  /// What free_bytes answers from now on.
  void set_free_bytes(uint64_t bytes);

  struct Record {
    Operation operation;
    std::string path;
  };
  /// Everything that succeeded so far, in order.
  std::vector<Record> records() const;
  /// Number of changes that succeeded so far.
  uint64_t changes() const;

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create(const std::string& path, bool truncate = true) override;
  Result<std::optional<EntryKind>> kind(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> list(const std::string& path) override;
  Result<> make_directories(const std::string& path) override;
  Result<> rename(const std::string& from, const std::string& to) override;
  Result<> remove_all(const std::string& path) override;
  Result<> sync_directory(const std::string& path) override;
  Result<std::string> real_path(const std::string& path) override { return base_.real_path(path); }
  Result<std::unique_ptr<FolderLock>> lock(const std::string& path) override { return base_.lock(path); }
  Result<std::optional<uint64_t>> free_bytes(const std::string& path) override;

 private:
  struct State;
  Storage& base_;
  std::shared_ptr<State> state_;
};

}  // namespace maxport
