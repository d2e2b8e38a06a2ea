#include <algorithm>
#include <mutex>
#include <set>

#include "storage/key_value_store.h"
#include "storage/storage.h"

namespace maxport {
namespace {

/// Deeper folders are refused; links between folders could make them endless.
constexpr int kMaxDepth = 64;

Result<std::string> path_of(const std::string& folder, std::string_view key) {
  bool good = !key.empty() && key.find_first_of(std::string_view("\0\\", 2)) == std::string_view::npos;
  for (size_t start = 0; good && start <= key.size();) {
    const size_t end = std::min(key.find('/', start), key.size());
    const std::string_view part = key.substr(start, end - start);
    good = !part.empty() && part != "." && part != "..";
    start = end + 1;
  }
  if (good) return join_path(folder, key);
  return fail(ErrorKind::kInvalidArgument,
              "the key \"{}\" cannot be a file below {}: empty, \".\" and \"..\" parts, NUL and backslash are refused",
              printable(key), printable(folder));
}

class DirectoryReader final : public KeyValueReader {
 public:
  DirectoryReader(Storage& storage, std::string folder) : storage_(storage), folder_(std::move(folder)) {}

  Result<std::optional<Bytes>> read(std::string_view key, uint64_t max_bytes) override {
    MAXPORT_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, find(key));
    if (!file) return std::nullopt;
    if (file->size() > max_bytes)
      return fail(ErrorKind::kResourceLimit, "reading {}: it has {} bytes, at most {} are allowed",
                  printable(file->path()), file->size(), max_bytes);
    Bytes value(file->size());
    MAXPORT_RETURN_IF_ERROR(file->read_at(0, value));
    return value;
  }

  Result<Bytes> read_range(std::string_view key, uint64_t offset, uint64_t length) override {
    MAXPORT_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, find(key));
    if (!file)
      return fail(ErrorKind::kNotFound, "reading key \"{}\": there is no such file below {}", printable(key),
                  printable(folder_));
    if (offset > file->size() || length > file->size() - offset)
      return fail(ErrorKind::kCorruptData,
                  "reading {}: the file ends at byte {}, but {} bytes from offset {} are needed",
                  printable(file->path()), file->size(), length, offset);
    Bytes value(length);
    MAXPORT_RETURN_IF_ERROR(file->read_at(offset, value));
    return value;
  }

  Result<std::optional<ValueLocation>> locate(std::string_view key) override {
    MAXPORT_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, find(key));
    if (!file) return std::nullopt;
    return ValueLocation{.path = file->path(), .offset = 0, .length = file->size()};
  }

  Result<> list(std::string_view prefix,
                const std::function<Result<>(std::string_view, const ValueLocation&)>& visit) override {
    return list_below("", prefix, visit, 0);
  }

 private:
  /// The open file of a key; null when there is none. A folder is not a value, so it counts as none.
  Result<std::unique_ptr<ReadableFile>> find(std::string_view key) {
    MAXPORT_ASSIGN_OR_RETURN(const std::string path, path_of(folder_, key));
    MAXPORT_ASSIGN_OR_RETURN(const std::optional<EntryKind> kind, storage_.kind(path));
    if (!kind || *kind == EntryKind::kDirectory) return nullptr;
    return storage_.open(path);
  }

  /// `above` is the part of the keys that leads to a folder, empty or ending with '/'.
  Result<> list_below(const std::string& above, std::string_view prefix,
                      const std::function<Result<>(std::string_view, const ValueLocation&)>& visit, int depth) {
    const std::string path = above.empty() ? folder_ : join_path(folder_, above.substr(0, above.size() - 1));
    if (depth > kMaxDepth)
      return fail(ErrorKind::kResourceLimit, "listing {}: folders are nested more than {} deep", printable(path),
                  kMaxDepth);
    MAXPORT_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, storage_.list(path));
    // "a.b" sorts before "a/c" but after "a", so folders compare with their slash.
    for (DirectoryEntry& entry : entries)
      if (entry.kind == EntryKind::kDirectory) entry.name += '/';
    std::ranges::sort(entries, {}, &DirectoryEntry::name);
    for (const DirectoryEntry& entry : entries) {
      const std::string key = above + entry.name;
      const size_t shared = std::min(key.size(), prefix.size());
      if (std::string_view(key).substr(0, shared) != prefix.substr(0, shared)) continue;
      if (entry.kind == EntryKind::kDirectory) {
        MAXPORT_RETURN_IF_ERROR(list_below(key, prefix, visit, depth + 1));
      } else if (entry.kind == EntryKind::kFile && key.size() >= prefix.size()) {
        MAXPORT_ASSIGN_OR_RETURN(const auto file, storage_.open(join_path(folder_, key)));
        MAXPORT_RETURN_IF_ERROR(visit(key, {.path = file->path(), .offset = 0, .length = file->size()}));
      }
    }
    return {};
  }

  Storage& storage_;
  std::string folder_;
};

/// What the segments of one store share.
class DirectoryWriter final : public KeyValueWriter {
 public:
  DirectoryWriter(Storage& storage, std::string folder) : storage_(storage), folder_(std::move(folder)) {}

  Result<std::unique_ptr<Segment>> start_segment(uint64_t index) override;

  Result<> adopt(SegmentRecord record) override {
    for (const StoredValue& value : record.values) {
      MAXPORT_ASSIGN_OR_RETURN(const std::string path, path_of(folder_, value.key));
      MAXPORT_ASSIGN_OR_RETURN(const auto file, storage_.open(path));
      if (file->size() != value.length)
        return fail(ErrorKind::kCorruptData, "adopting {}: it has {} bytes, but {} were written", printable(path),
                    file->size(), value.length);
    }
    return remember(record);
  }

  Result<> finish(bool sync) override {
    MAXPORT_RETURN_IF_ERROR(storage_.make_directories(folder_));
    return sync ? storage_.sync_directory(folder_) : Result<>();
  }

  Result<> claim_index(uint64_t index) {
    const std::lock_guard lock(mutex_);
    if (indices_.insert(index).second) return {};
    return fail(ErrorKind::kInternal, "segment {} of {} is written twice", index, printable(folder_));
  }

  /// Claims a key and makes its folders.
  Result<> make_room(std::string_view key, const std::string& path) {
    const std::string parent = parent_path(path);
    const std::lock_guard lock(mutex_);
    if (!keys_.emplace(key).second)
      return fail(ErrorKind::kInternal, "the key \"{}\" of {} is written twice", printable(key), printable(folder_));
    if (folders_.contains(parent)) return {};
    MAXPORT_RETURN_IF_ERROR(storage_.make_directories(parent));
    folders_.insert(parent);
    return {};
  }

 private:
  Result<> remember(const SegmentRecord& record) {
    MAXPORT_RETURN_IF_ERROR(claim_index(record.index));
    for (const StoredValue& value : record.values) {
      MAXPORT_ASSIGN_OR_RETURN(const std::string path, path_of(folder_, value.key));
      MAXPORT_RETURN_IF_ERROR(make_room(value.key, path));
    }
    return {};
  }

  Storage& storage_;
  const std::string folder_;
  std::mutex mutex_;
  std::set<uint64_t> indices_;
  std::set<std::string, std::less<>> keys_;
  std::set<std::string> folders_;
};

class DirectorySegment final : public Segment {
 public:
  DirectorySegment(Storage& storage, std::string folder, DirectoryWriter& writer, uint64_t index)
      : storage_(storage), folder_(std::move(folder)), writer_(writer) {
    record_.index = index;
  }

  Result<> put(std::string_view key, ByteSpan value) override {
    MAXPORT_ASSIGN_OR_RETURN(const std::string path, path_of(folder_, key));
    MAXPORT_RETURN_IF_ERROR(writer_.make_room(key, path));
    MAXPORT_ASSIGN_OR_RETURN(const auto file, storage_.create(path));
    MAXPORT_RETURN_IF_ERROR(file->write_at(0, value));
    MAXPORT_RETURN_IF_ERROR(file->close());
    record_.values.push_back({.key = std::string(key), .offset = 0, .length = value.size()});
    return {};
  }

  // Whether to sync is known only now, and holding every file open until then would need too many descriptors. A later
  // descriptor syncs the whole file and reports what writing it left pending.
  Result<SegmentRecord> finish(bool sync) override {
    std::set<std::string, std::greater<>> touched;
    for (const StoredValue& value : record_.values) {
      if (!sync) break;
      const std::string path = join_path(folder_, value.key);
      MAXPORT_ASSIGN_OR_RETURN(const auto file, storage_.create(path, false));
      MAXPORT_RETURN_IF_ERROR(file->sync());
      MAXPORT_RETURN_IF_ERROR(file->close());
      for (std::string at = parent_path(path); at.size() > folder_.size(); at = parent_path(at)) touched.insert(at);
      touched.insert(folder_);
    }
    // Longer names first: a folder is durable before the one that names it.
    for (const std::string& path : touched) MAXPORT_RETURN_IF_ERROR(storage_.sync_directory(path));
    return std::move(record_);
  }

 private:
  Storage& storage_;
  const std::string folder_;
  DirectoryWriter& writer_;
  SegmentRecord record_;
};

Result<std::unique_ptr<Segment>> DirectoryWriter::start_segment(uint64_t index) {
  MAXPORT_RETURN_IF_ERROR(claim_index(index));
  return std::make_unique<DirectorySegment>(storage_, folder_, *this, index);
}

/// Without trailing slashes, so that the parents of a file can be walked up to the folder by length.
std::string without_trailing_slashes(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

}  // namespace

std::unique_ptr<KeyValueReader> open_directory_store(Storage& storage, std::string folder) {
  return std::make_unique<DirectoryReader>(storage, without_trailing_slashes(std::move(folder)));
}

std::unique_ptr<KeyValueWriter> create_directory_store(Storage& storage, std::string folder) {
  return std::make_unique<DirectoryWriter>(storage, without_trailing_slashes(std::move(folder)));
}

}  // namespace maxport
