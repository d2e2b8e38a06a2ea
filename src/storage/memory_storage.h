// A file system in memory, for tests. It keeps what was written apart from what was made durable, so that a test can
// pull the plug.
//
// Paths start at one root, "/a" and "a" are the same. Safe for any number of threads.
#pragma once

#include "storage/storage.h"

namespace maxport {

class MemoryStorage final : public Storage {
 public:
  MemoryStorage();
  ~MemoryStorage() override;

  /// What a machine would find after losing power now: of each file what was synced last, and of each folder the names
  /// that it had when it was synced last. The strictest reading of POSIX; real file systems keep more.
  std::unique_ptr<MemoryStorage> after_power_loss() const;

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create(const std::string& path, bool truncate = true) override;
  Result<std::optional<EntryKind>> kind(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> list(const std::string& path) override;
  Result<> make_directories(const std::string& path) override;
  Result<> rename(const std::string& from, const std::string& to) override;
  Result<> remove_all(const std::string& path) override;
  Result<> sync_directory(const std::string& path) override;
  Result<std::optional<uint64_t>> free_bytes(const std::string& path) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace maxport
