#include "storage/local_storage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/checked.h"
#include "storage/storage.h"
#include "storage/system_error.h"

namespace maxport {
namespace {

std::unexpected<Error> fail_with_errno(std::string_view doing, std::string_view path) {
  return std::unexpected(system_error(errno, doing, path));
}

/// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int value() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

/// The C library stops at a NUL, so a name that holds one would open another file than the one it names.
Result<> check_path(std::string_view doing, const std::string& path) {
  if (path.empty()) return fail(ErrorKind::kInvalidArgument, "{} a file with an empty path", doing);
  if (path.find('\0') != std::string::npos)
    return fail(ErrorKind::kInvalidArgument, "{} {}: the path holds a NUL character", doing, printable(path));
  return {};
}

std::string_view kind_text(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISBLK(mode) || S_ISCHR(mode)) return "a device";
  return "not a regular file";
}

EntryKind entry_kind(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::kFile;
  return S_ISDIR(mode) ? EntryKind::kDirectory : EntryKind::kOther;
}

/// Refuses whatever is not a regular file. Opening with O_NONBLOCK before keeps a FIFO from blocking.
Result<struct stat> check_regular(const Descriptor& descriptor, std::string_view doing, const std::string& path) {
  struct stat status;
  if (::fstat(descriptor.value(), &status) != 0) return fail_with_errno(doing, path);
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::kInvalidArgument, "{} {}: it is {}, expected a regular file", doing, printable(path),
                kind_text(status.st_mode));
  return status;
}

class LocalReadableFile final : public ReadableFile {
 public:
  LocalReadableFile(std::string path, Descriptor descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }

  Result<> read_at(uint64_t offset, MutableByteSpan out) const override {
    const auto end = checked_add<uint64_t>(offset, out.size());
    if (!end || *end > static_cast<uint64_t>(INT64_MAX))
      return fail(ErrorKind::kInvalidArgument, "reading {}: {} bytes from offset {} lie outside any file",
                  printable(path_), out.size(), offset);
    const Transfer transfer = transfer_all(out.size(), [&](size_t position, size_t count) {
      return ::pread(descriptor_.value(), out.data() + position, count, static_cast<off_t>(offset + position));
    });
    if (transfer.error_number != 0) return std::unexpected(system_error(transfer.error_number, "reading", path_));
    if (transfer.done < out.size())
      return fail(ErrorKind::kCorruptData,
                  "reading {}: the file ends at byte {}, but {} bytes from offset {} are needed", printable(path_),
                  transfer.done == 0 ? current_size() : offset + transfer.done, out.size(), offset);
    return {};
  }

  void will_need(uint64_t offset, uint64_t length) const override { advise(offset, length, POSIX_FADV_WILLNEED); }
  void done_with(uint64_t offset, uint64_t length) const override { advise(offset, length, POSIX_FADV_DONTNEED); }

  // By path, not by descriptor: a file that was replaced must look different.
  Result<FileStamp> stamp() const override {
    struct stat status;
    if (::stat(path_.c_str(), &status) != 0) return fail_with_errno("looking at", path_);
    return FileStamp{.size = static_cast<uint64_t>(status.st_size),
                     .modified_nanoseconds = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
                     .inode = status.st_ino};
  }

  std::optional<int> descriptor() const override { return descriptor_.value(); }

 private:
  uint64_t current_size() const {
    struct stat status;
    return ::fstat(descriptor_.value(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : size_;
  }
  void advise(uint64_t offset, uint64_t length, int advice) const {
    ::posix_fadvise(descriptor_.value(), static_cast<off_t>(offset), static_cast<off_t>(length), advice);
  }

  std::string path_;
  Descriptor descriptor_;
  uint64_t size_;
};

class LocalWritableFile final : public WritableFile {
 public:
  LocalWritableFile(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  const std::string& path() const override { return path_; }

  Result<> write_at(uint64_t offset, ByteSpan bytes) override {
    MAXPORT_RETURN_IF_ERROR(check_open("writing"));
    const auto end = checked_add<uint64_t>(offset, bytes.size());
    if (!end || *end > static_cast<uint64_t>(INT64_MAX))
      return fail(ErrorKind::kInvalidArgument, "writing {}: {} bytes at offset {} lie outside any file",
                  printable(path_), bytes.size(), offset);
    const Transfer transfer = transfer_all(bytes.size(), [&](size_t position, size_t count) {
      return ::pwrite(descriptor_.value(), bytes.data() + position, count, static_cast<off_t>(offset + position));
    });
    if (transfer.error_number != 0) return std::unexpected(system_error(transfer.error_number, "writing", path_));
    // A write that moves nothing without an error means that nothing more fits.
    if (transfer.done < bytes.size()) return std::unexpected(system_error(ENOSPC, "writing", path_));
    return {};
  }

  // Blocks that are there need not be looked for one by one while they are written.
  void reserve(uint64_t bytes) override {
    if (descriptor_.value() < 0 || bytes == 0 || bytes > static_cast<uint64_t>(INT64_MAX)) return;
    reserved_ = ::fallocate(descriptor_.value(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0;
  }

  Result<> sync() override {
    MAXPORT_RETURN_IF_ERROR(check_open("syncing"));
    while (::fsync(descriptor_.value()) != 0)
      if (errno != EINTR) return fail_with_errno("syncing", path_);
    return {};
  }

  // Linux releases the descriptor even when close reports EINTR, so closing again could hit another file.
  Result<> close() override {
    MAXPORT_RETURN_IF_ERROR(check_open("closing"));
    give_back();
    if (::close(descriptor_.release()) != 0 && errno != EINTR) return fail_with_errno("closing", path_);
    return {};
  }

  std::optional<int> descriptor() const override {
    return descriptor_.value() >= 0 ? std::optional(descriptor_.value()) : std::nullopt;
  }

 private:
  Result<> check_open(std::string_view doing) const {
    if (descriptor_.value() >= 0) return {};
    return fail(ErrorKind::kInternal, "{} {}: the file was closed before", doing, printable(path_));
  }

  /// Truncating to the size that it has frees what lies beyond. Nobody writes any more when a file is closed; while it is
  /// synced others may, and what they write would be cut off.
  void give_back() {
    struct stat status;
    if (std::exchange(reserved_, false) && ::fstat(descriptor_.value(), &status) == 0)
      (void)!::ftruncate(descriptor_.value(), status.st_size);
  }

  std::string path_;
  Descriptor descriptor_;
  bool reserved_ = false;
};

struct FolderCloser {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

EntryKind kind_of_entry(DIR* folder, const dirent& entry) {
  if (entry.d_type == DT_REG) return EntryKind::kFile;
  if (entry.d_type == DT_DIR) return EntryKind::kDirectory;
  struct stat status;
  if (::fstatat(::dirfd(folder), entry.d_name, &status, 0) != 0) return EntryKind::kOther;
  return entry_kind(status.st_mode);
}

/// flock(2) on the folder itself: the kernel drops it with the descriptor.
class LocalLock final : public FolderLock {
 public:
  explicit LocalLock(Descriptor folder) : folder_(std::move(folder)) {}

 private:
  Descriptor folder_;
};

class LocalStorage final : public Storage {
 public:
  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    MAXPORT_RETURN_IF_ERROR(check_path("opening", path));
    Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (descriptor.value() < 0) return fail_with_errno("opening", path);
    MAXPORT_ASSIGN_OR_RETURN(const struct stat status, check_regular(descriptor, "opening", path));
    return std::make_unique<LocalReadableFile>(path, std::move(descriptor), static_cast<uint64_t>(status.st_size));
  }

  Result<std::unique_ptr<WritableFile>> create(const std::string& path, bool truncate) override {
    MAXPORT_RETURN_IF_ERROR(check_path("creating", path));
    Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
    if (descriptor.value() < 0) return fail_with_errno("creating", path);
    MAXPORT_ASSIGN_OR_RETURN(const struct stat status, check_regular(descriptor, "creating", path));
    // Not when it is empty already: ext4 would then start to write a new file out as soon as it is closed.
    if (truncate && status.st_size > 0 && ::ftruncate(descriptor.value(), 0) != 0) return fail_with_errno("emptying", path);
    return std::make_unique<LocalWritableFile>(path, std::move(descriptor));
  }

  Result<std::optional<EntryKind>> kind(const std::string& path) override {
    MAXPORT_RETURN_IF_ERROR(check_path("looking at", path));
    struct stat status;
    if (::stat(path.c_str(), &status) == 0) return entry_kind(status.st_mode);
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return fail_with_errno("looking at", path);
  }

  Result<std::vector<DirectoryEntry>> list(const std::string& path) override {
    MAXPORT_RETURN_IF_ERROR(check_path("listing", path));
    std::unique_ptr<DIR, FolderCloser> folder(::opendir(path.c_str()));
    if (!folder) return fail_with_errno("listing", path);
    std::vector<DirectoryEntry> entries;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(folder.get());
      if (entry == nullptr && errno != 0) return fail_with_errno("listing", path);
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") entries.push_back({std::string(name), kind_of_entry(folder.get(), *entry)});
    }
    std::ranges::sort(entries, {}, &DirectoryEntry::name);
    return entries;
  }

  Result<> make_directories(const std::string& path) override {
    MAXPORT_RETURN_IF_ERROR(check_path("creating the folder", path));
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return std::unexpected(system_error(error.value(), "creating the folder", path));
    return {};
  }

  Result<> rename(const std::string& from, const std::string& to) override {
    MAXPORT_RETURN_IF_ERROR(check_path("renaming", from));
    MAXPORT_RETURN_IF_ERROR(check_path("renaming to", to));
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
    // Network and layered file systems answer EINVAL where they do not know the flag.
    if (errno == ENOSYS || errno == EINVAL || errno == EOPNOTSUPP) return rename_by_claim(from, to);
    return fail_with_errno(fmt::format("renaming {} to", printable(from)), to);
  }

  Result<> remove_all(const std::string& path) override {
    MAXPORT_RETURN_IF_ERROR(check_path("removing", path));
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return std::unexpected(system_error(error.value(), "removing", path));
    return {};
  }

  Result<> sync_directory(const std::string& path) override {
    MAXPORT_RETURN_IF_ERROR(check_path("syncing the folder", path));
    Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (descriptor.value() < 0) return fail_with_errno("syncing the folder", path);
    while (::fsync(descriptor.value()) != 0) {
      if (errno == EINTR) continue;
      // Some network file systems have nothing to sync in a folder and say so.
      if (errno == EINVAL || errno == EOPNOTSUPP) break;
      return fail_with_errno("syncing the folder", path);
    }
    return {};
  }

  Result<std::string> real_path(const std::string& path) override {
    MAXPORT_RETURN_IF_ERROR(check_path("resolving", path));
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    if (error) return std::unexpected(system_error(error.value(), "resolving", path));
    return real.string();
  }

  // The folder may not have been made yet; what counts is the file system it will be on.
  Result<std::unique_ptr<FolderLock>> lock(const std::string& path) override {
    Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.value() < 0) return fail_with_errno("locking", path);
    if (::flock(folder.value(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        return fail(ErrorKind::kIo, "{} is being written by another process; wait for it, or choose another place",
                    printable(path));
      // Some network file systems have no locks.
      if (errno != ENOLCK && errno != EOPNOTSUPP) return fail_with_errno("locking", path);
    }
    return std::make_unique<LocalLock>(std::move(folder));
  }
  Result<std::optional<uint64_t>> free_bytes(const std::string& path) override {
    MAXPORT_RETURN_IF_ERROR(check_path("looking for free space at", path));
    struct statvfs status;
    std::string at = path;
    while (::statvfs(at.c_str(), &status) != 0) {
      if (errno == EINTR) continue;
      const std::string above = parent_path(at);
      if (errno != ENOENT || above == at) return fail_with_errno("looking for free space at", path);
      at = above;
    }
    return checked_multiply<uint64_t>(status.f_bavail, status.f_frsize);
  }
};

Result<> claim(const std::string& path, bool folder) {
  if (folder) {
    if (::mkdir(path.c_str(), 0777) != 0) return std::unexpected(system_error(errno, "renaming to", path));
    return {};
  }
  const Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (descriptor.value() < 0) return std::unexpected(system_error(errno, "renaming to", path));
  return {};
}

}  // namespace

Result<> rename_by_claim(const std::string& from, const std::string& to) {
  struct stat status;
  if (::lstat(from.c_str(), &status) != 0) return fail_with_errno("renaming", from);
  const bool folder = S_ISDIR(status.st_mode);
  MAXPORT_RETURN_IF_ERROR(claim(to, folder));
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  const Error error = system_error(errno, fmt::format("renaming {} to", printable(from)), to);
  folder ? ::rmdir(to.c_str()) : ::unlink(to.c_str());
  return std::unexpected(error);
}

Storage& local_storage() {
  static LocalStorage storage;
  return storage;
}

}  // namespace maxport
