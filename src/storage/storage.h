// Where bytes live: files in folders, addressed by path. Formats are written against this interface only, so that tests
// can put them in memory or make any operation fail, and an object store can take the place of a disk.
//
// Paths are '/'-separated. Failures are kIo (with the path and the system's reason), kNotFound, kInvalidArgument, or
// kResourceLimit for a full disk, a quota and too many open files. All methods are safe to call from several threads; a
// WritableFile may be written at disjoint ranges by several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace maxport {

/// Identifies the content of a file well enough to notice that it was replaced or changed.
struct FileStamp {
  uint64_t size = 0;
  int64_t modified_nanoseconds = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual const std::string& path() const = 0;
  /// Size in bytes when the file was opened.
  virtual uint64_t size() const = 0;
  /// Fills `out` from byte `offset` on; a file that ends earlier is kCorruptData ("ends at byte N").
  virtual Result<> read_at(uint64_t offset, MutableByteSpan out) const = 0;
  /// Hints that this range will be read soon, or is not needed again.
  virtual void will_need(uint64_t, uint64_t) const {}
  virtual void done_with(uint64_t, uint64_t) const {}
  /// What lies at the file's path now: another inode when it was replaced, kNotFound when it was removed.
  virtual Result<FileStamp> stamp() const = 0;
  /// The descriptor for kernel-side copies, where there is one.
  virtual std::optional<int> descriptor() const { return std::nullopt; }
};

class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual const std::string& path() const = 0;
  virtual Result<> write_at(uint64_t offset, ByteSpan bytes) = 0;
  /// Says how many bytes the file will probably have, so that the file system can set them aside at once. A hint: the size
  /// stays what was written, what remains unused is given back by close(), and nothing can fail.
  virtual void reserve(uint64_t) {}
  /// Makes the content durable.
  virtual Result<> sync() = 0;
  /// Reports errors that writing left pending. The destructor closes without reporting.
  virtual Result<> close() = 0;
  virtual std::optional<int> descriptor() const { return std::nullopt; }
};

enum class EntryKind { kFile, kDirectory, kOther };

struct DirectoryEntry {
  std::string name;
  EntryKind kind;
};

/// Held as long as nobody else may write below a folder.
class FolderLock {
 public:
  virtual ~FolderLock() = default;
};

class Storage {
 public:
  virtual ~Storage() = default;

  /// Opens a regular file (never a FIFO, socket, device or directory).
  virtual Result<std::unique_ptr<ReadableFile>> open(const std::string& path) = 0;
  /// Creates a file, or empties the one that is there when `truncate`; with `truncate` false an existing file is
  /// opened for writing as it is.
  virtual Result<std::unique_ptr<WritableFile>> create(const std::string& path, bool truncate = true) = 0;
  /// What is at `path`, after following links; nothing when nothing is there.
  virtual Result<std::optional<EntryKind>> kind(const std::string& path) = 0;
  /// Entries of a folder, sorted by name as bytes.
  virtual Result<std::vector<DirectoryEntry>> list(const std::string& path) = 0;
  /// Creates the folder and its parents; no error when it is there.
  virtual Result<> make_directories(const std::string& path) = 0;
  /// Moves `from` to `to` in one step. `to` must not exist.
  virtual Result<> rename(const std::string& from, const std::string& to) = 0;
  /// Removes a file, or a folder with all it holds; no error when nothing is there.
  virtual Result<> remove_all(const std::string& path) = 0;
  /// Makes the entries of a folder durable.
  virtual Result<> sync_directory(const std::string& path) = 0;
  /// The path with every symbolic link followed; kNotFound when it leads nowhere. `path` itself where there are no
  /// links.
  virtual Result<std::string> real_path(const std::string& path) { return path; }
  /// Claims a folder for this process until the lock is destroyed or the process ends, however it ends. kIo when
  /// another process holds it ("is being written by another process"). Null where the storage knows no locks.
  virtual Result<std::unique_ptr<FolderLock>> lock(const std::string&) { return nullptr; }
  /// Bytes that can still be written below `path`, where that is known. `path` need not exist yet.
  virtual Result<std::optional<uint64_t>> free_bytes(const std::string& path) = 0;

  /// Whole content of a file of at most `max_bytes` (more is kResourceLimit).
  Result<std::string> read_text(const std::string& path, uint64_t max_bytes = uint64_t{256} << 20);
  /// Writes a whole file and makes it and its name durable.
  Result<> write_text(const std::string& path, std::string_view text);
};

/// The machine's file system.
Storage& local_storage();

/// Joins with exactly one '/'.
std::string join_path(std::string_view folder, std::string_view name);

/// The folder that holds `path`: "a" for "a/b", "." for "a", "/" for "/a" and "/".
std::string parent_path(std::string_view path);

}  // namespace maxport
