#include "storage/faulty_storage.h"

#include <algorithm>
#include <mutex>

#include "storage/system_error.h"

namespace maxport {
namespace {

std::string_view doing(Operation operation) {
  switch (operation) {
    case Operation::kOpen: return "opening";
    case Operation::kCreate: return "creating";
    case Operation::kRead: return "reading";
    case Operation::kWrite: return "writing";
    case Operation::kSync: return "syncing";
    case Operation::kClose: return "closing";
    case Operation::kRename: return "renaming to";
    case Operation::kMakeDirectories: return "creating the folder";
    case Operation::kRemove: return "removing";
    case Operation::kSyncDirectory: return "syncing the folder";
    case Operation::kList: return "listing";
    case Operation::kKind: return "looking at";
  }
  return "using";
}

}  // namespace

bool is_change(Operation operation) {
  switch (operation) {
    case Operation::kOpen:
    case Operation::kRead:
    case Operation::kClose:
    case Operation::kList:
    case Operation::kKind: return false;
    default: return true;
  }
}

struct FaultyStorage::State {
  struct Armed {
    Fault fault;
    uint64_t seen = 0;
  };
  /// What is to happen to one operation.
  struct Verdict {
    int error_number = 0;
    uint64_t bytes_before = 0;
  };

  mutable std::mutex mutex;
  std::vector<Armed> armed;
  std::vector<Record> records;
  uint64_t changes = 0;
  std::optional<uint64_t> changes_left;
  int stop_error_number = EIO;
  std::optional<uint64_t> free_bytes;

  Verdict judge(Operation operation, const std::string& path) {
    const std::lock_guard lock(mutex);
    Verdict verdict;
    for (Armed& one : armed) {
      const Fault& fault = one.fault;
      if (fault.operation != operation || path.find(fault.path_part) == std::string::npos) continue;
      ++one.seen;
      if (one.seen == fault.nth || (fault.from_then_on && one.seen > fault.nth))
        verdict = {fault.error_number, one.seen == fault.nth ? fault.bytes_before : 0};
    }
    if (verdict.error_number != 0 || !is_change(operation) || !changes_left) return verdict;
    if (*changes_left == 0) return {stop_error_number, 0};
    --*changes_left;
    return verdict;
  }

  void record(Operation operation, const std::string& path) {
    const std::lock_guard lock(mutex);
    records.push_back({operation, path});
    if (is_change(operation)) ++changes;
  }

  /// Lets `action` happen unless a fault says otherwise.
  template <class Action>
  auto run(Operation operation, const std::string& path, Action action) -> decltype(action()) {
    if (const Verdict verdict = judge(operation, path); verdict.error_number != 0)
      return std::unexpected(system_error(verdict.error_number, doing(operation), path));
    auto result = action();
    if (result) record(operation, path);
    return result;
  }

  class OpenReadable;
  class OpenWritable;
};

class FaultyStorage::State::OpenReadable final : public ReadableFile {
 public:
  OpenReadable(std::shared_ptr<State> state, std::unique_ptr<ReadableFile> base)
      : state_(std::move(state)), base_(std::move(base)) {}

  const std::string& path() const override { return base_->path(); }
  uint64_t size() const override { return base_->size(); }
  Result<> read_at(uint64_t offset, MutableByteSpan out) const override {
    return state_->run(Operation::kRead, path(), [&] { return base_->read_at(offset, out); });
  }
  void will_need(uint64_t offset, uint64_t length) const override { base_->will_need(offset, length); }
  void done_with(uint64_t offset, uint64_t length) const override { base_->done_with(offset, length); }
  Result<FileStamp> stamp() const override { return base_->stamp(); }

 private:
  std::shared_ptr<State> state_;
  std::unique_ptr<ReadableFile> base_;
};

class FaultyStorage::State::OpenWritable final : public WritableFile {
 public:
  OpenWritable(std::shared_ptr<State> state, std::unique_ptr<WritableFile> base)
      : state_(std::move(state)), base_(std::move(base)) {}

  const std::string& path() const override { return base_->path(); }
  Result<> write_at(uint64_t offset, ByteSpan bytes) override {
    if (const Verdict verdict = state_->judge(Operation::kWrite, path()); verdict.error_number != 0) {
      const size_t before = std::min<size_t>(verdict.bytes_before, bytes.size());
      if (before > 0) MAXPORT_RETURN_IF_ERROR(base_->write_at(offset, bytes.first(before)));
      return std::unexpected(system_error(verdict.error_number, doing(Operation::kWrite), path()));
    }
    MAXPORT_RETURN_IF_ERROR(base_->write_at(offset, bytes));
    state_->record(Operation::kWrite, path());
    return {};
  }
  void reserve(uint64_t bytes) override { base_->reserve(bytes); }
  Result<> sync() override {
    return state_->run(Operation::kSync, path(), [&] { return base_->sync(); });
  }
  Result<> close() override {
    return state_->run(Operation::kClose, path(), [&] { return base_->close(); });
  }

 private:
  std::shared_ptr<State> state_;
  std::unique_ptr<WritableFile> base_;
};

FaultyStorage::FaultyStorage(Storage& base) : base_(base), state_(std::make_shared<State>()) {}
FaultyStorage::~FaultyStorage() = default;

void FaultyStorage::add(Fault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->armed.push_back({std::move(fault)});
}

void FaultyStorage::clear_faults() {
  const std::lock_guard lock(state_->mutex);
  state_->armed.clear();
  state_->changes_left.reset();
}

void FaultyStorage::stop_changes_after(uint64_t count, int error_number) {
  const std::lock_guard lock(state_->mutex);
  state_->changes_left = count;
  state_->stop_error_number = error_number;
}

void FaultyStorage::set_free_bytes(uint64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->free_bytes = bytes;
}

std::vector<FaultyStorage::Record> FaultyStorage::records() const {
  const std::lock_guard lock(state_->mutex);
  return state_->records;
}

uint64_t FaultyStorage::changes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->changes;
}

Result<std::unique_ptr<ReadableFile>> FaultyStorage::open(const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(auto file, state_->run(Operation::kOpen, path, [&] { return base_.open(path); }));
  return std::make_unique<State::OpenReadable>(state_, std::move(file));
}

Result<std::unique_ptr<WritableFile>> FaultyStorage::create(const std::string& path, bool truncate) {
  MAXPORT_ASSIGN_OR_RETURN(auto file,
                           state_->run(Operation::kCreate, path, [&] { return base_.create(path, truncate); }));
  return std::make_unique<State::OpenWritable>(state_, std::move(file));
}

Result<std::optional<EntryKind>> FaultyStorage::kind(const std::string& path) {
  return state_->run(Operation::kKind, path, [&] { return base_.kind(path); });
}

Result<std::vector<DirectoryEntry>> FaultyStorage::list(const std::string& path) {
  return state_->run(Operation::kList, path, [&] { return base_.list(path); });
}

Result<> FaultyStorage::make_directories(const std::string& path) {
  return state_->run(Operation::kMakeDirectories, path, [&] { return base_.make_directories(path); });
}

Result<> FaultyStorage::rename(const std::string& from, const std::string& to) {
  return state_->run(Operation::kRename, to, [&] { return base_.rename(from, to); });
}

Result<> FaultyStorage::remove_all(const std::string& path) {
  return state_->run(Operation::kRemove, path, [&] { return base_.remove_all(path); });
}

Result<> FaultyStorage::sync_directory(const std::string& path) {
  return state_->run(Operation::kSyncDirectory, path, [&] { return base_.sync_directory(path); });
}

Result<std::optional<uint64_t>> FaultyStorage::free_bytes(const std::string& path) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->free_bytes) return *state_->free_bytes;
  }
  return base_.free_bytes(path);
}

}  // namespace maxport
