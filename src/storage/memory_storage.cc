#include "storage/memory_storage.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/checked.h"
#include "storage/system_error.h"

namespace maxport {
namespace {

struct Node;
using NodePointer = std::shared_ptr<Node>;
using Entries = std::map<std::string, NodePointer, std::less<>>;

/// A file (content) or a folder (entries), each as it is and as it was when it was synced last.
struct Node {
  bool is_folder = false;
  FileStamp stamp = {};
  Bytes content = {}, durable_content = {};
  Entries entries = {}, durable_entries = {};
};

NodePointer copy_durable(const Node& node) {
  auto copy = std::make_shared<Node>();
  copy->is_folder = node.is_folder;
  copy->stamp = node.stamp;
  copy->stamp.size = node.durable_content.size();
  copy->content = copy->durable_content = node.durable_content;
  for (const auto& [name, entry] : node.durable_entries) copy->entries.emplace(name, copy_durable(*entry));
  copy->durable_entries = copy->entries;
  return copy;
}

/// A cap instead of the size of the disk: a test that writes to a huge offset is a mistake.
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 32;

std::unexpected<Error> fail_with(int error_number, std::string_view doing, std::string_view path) {
  return std::unexpected(system_error(error_number, doing, path));
}

}  // namespace

struct MemoryStorage::State {
  std::mutex mutex;
  NodePointer root = std::make_shared<Node>(Node{.is_folder = true});
  uint64_t last_inode = 0;
  int64_t clock = 0;

  /// Names from the root down, with "." and ".." resolved.
  static Result<std::vector<std::string>> split(std::string_view doing, const std::string& path) {
    if (path.empty() || path.find('\0') != std::string::npos)
      return fail(ErrorKind::kInvalidArgument, "{} {}: the path is empty or holds a NUL character", doing,
                  printable(path));
    std::vector<std::string> parts;
    for (size_t start = 0; start <= path.size();) {
      const size_t end = std::min(path.find('/', start), path.size());
      const std::string part = path.substr(start, end - start);
      if (part == ".." && !parts.empty()) parts.pop_back();
      if (!part.empty() && part != "." && part != "..") parts.push_back(part);
      start = end + 1;
    }
    return parts;
  }

  NodePointer find(std::span<const std::string> parts) const {
    NodePointer node = root;
    for (const std::string& part : parts) {
      const auto entry = node->entries.find(part);
      if (entry == node->entries.end()) return nullptr;
      node = entry->second;
    }
    return node;
  }

  /// The folder that holds (or will hold) the last of `parts`; null when there is none.
  NodePointer find_parent(std::span<const std::string> parts) const {
    if (parts.empty()) return nullptr;
    const NodePointer parent = find(parts.first(parts.size() - 1));
    return parent && parent->is_folder ? parent : nullptr;
  }

  NodePointer make_node(bool is_folder) {
    auto node = std::make_shared<Node>();
    node->is_folder = is_folder;
    node->stamp.inode = ++last_inode;
    touch(*node);
    return node;
  }

  void touch(Node& node) {
    node.stamp.size = node.content.size();
    node.stamp.modified_nanoseconds = ++clock;
  }

  class OpenReadable;
  class OpenWritable;
};

class MemoryStorage::State::OpenReadable final : public ReadableFile {
 public:
  OpenReadable(std::string path, std::shared_ptr<State> state, NodePointer node)
      : path_(std::move(path)), state_(std::move(state)), node_(std::move(node)), size_(node_->content.size()) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }

  Result<> read_at(uint64_t offset, MutableByteSpan out) const override {
    const std::lock_guard lock(state_->mutex);
    const uint64_t size = node_->content.size();
    const auto end = checked_add<uint64_t>(offset, out.size());
    if (!end || *end > size)
      return fail(ErrorKind::kCorruptData,
                  "reading {}: the file ends at byte {}, but {} bytes from offset {} are needed", printable(path_),
                  size, out.size(), offset);
    std::copy_n(node_->content.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }

  Result<FileStamp> stamp() const override {
    const std::lock_guard lock(state_->mutex);
    MAXPORT_ASSIGN_OR_RETURN(const auto parts, split("looking at", path_));
    const NodePointer node = state_->find(parts);
    if (!node) return fail_with(ENOENT, "looking at", path_);
    return node->stamp;
  }

 private:
  std::string path_;
  std::shared_ptr<State> state_;
  NodePointer node_;
  uint64_t size_;
};

class MemoryStorage::State::OpenWritable final : public WritableFile {
 public:
  OpenWritable(std::string path, std::shared_ptr<State> state, NodePointer node)
      : path_(std::move(path)), state_(std::move(state)), node_(std::move(node)) {}

  const std::string& path() const override { return path_; }

  Result<> write_at(uint64_t offset, ByteSpan bytes) override {
    const std::lock_guard lock(state_->mutex);
    MAXPORT_RETURN_IF_ERROR(check_open("writing"));
    const auto end = checked_add<uint64_t>(offset, bytes.size());
    if (!end || *end > kMaxFileBytes) return fail_with(EFBIG, "writing", path_);
    if (*end > node_->content.size()) node_->content.resize(*end);
    std::copy(bytes.begin(), bytes.end(), node_->content.begin() + static_cast<ptrdiff_t>(offset));
    state_->touch(*node_);
    return {};
  }

  Result<> sync() override {
    const std::lock_guard lock(state_->mutex);
    MAXPORT_RETURN_IF_ERROR(check_open("syncing"));
    node_->durable_content = node_->content;
    return {};
  }

  Result<> close() override {
    const std::lock_guard lock(state_->mutex);
    MAXPORT_RETURN_IF_ERROR(check_open("closing"));
    closed_ = true;
    return {};
  }

 private:
  Result<> check_open(std::string_view doing) const {
    if (!closed_) return {};
    return fail(ErrorKind::kInternal, "{} {}: the file was closed before", doing, printable(path_));
  }

  std::string path_;
  std::shared_ptr<State> state_;
  NodePointer node_;
  bool closed_ = false;
};

MemoryStorage::MemoryStorage() : state_(std::make_shared<State>()) {}
MemoryStorage::~MemoryStorage() = default;

std::unique_ptr<MemoryStorage> MemoryStorage::after_power_loss() const {
  const std::lock_guard lock(state_->mutex);
  auto after = std::make_unique<MemoryStorage>();
  after->state_->root = copy_durable(*state_->root);
  after->state_->last_inode = state_->last_inode;
  after->state_->clock = state_->clock;
  return after;
}

Result<std::unique_ptr<ReadableFile>> MemoryStorage::open(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  MAXPORT_ASSIGN_OR_RETURN(const auto parts, State::split("opening", path));
  const NodePointer node = state_->find(parts);
  if (!node) return fail_with(ENOENT, "opening", path);
  if (node->is_folder)
    return fail(ErrorKind::kInvalidArgument, "opening {}: it is a folder, expected a regular file", printable(path));
  return std::make_unique<State::OpenReadable>(path, state_, node);
}

Result<std::unique_ptr<WritableFile>> MemoryStorage::create(const std::string& path, bool truncate) {
  const std::lock_guard lock(state_->mutex);
  MAXPORT_ASSIGN_OR_RETURN(const auto parts, State::split("creating", path));
  const NodePointer parent = state_->find_parent(parts);
  if (!parent) return fail_with(ENOENT, "creating", path);
  NodePointer& node = parent->entries[parts.back()];
  if (node && node->is_folder) return fail_with(EISDIR, "creating", path);
  if (!node) node = state_->make_node(false);
  if (truncate) node->content.clear();
  state_->touch(*node);
  return std::make_unique<State::OpenWritable>(path, state_, node);
}

Result<std::optional<EntryKind>> MemoryStorage::kind(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  MAXPORT_ASSIGN_OR_RETURN(const auto parts, State::split("looking at", path));
  const NodePointer node = state_->find(parts);
  if (!node) return std::nullopt;
  return node->is_folder ? EntryKind::kDirectory : EntryKind::kFile;
}

Result<std::vector<DirectoryEntry>> MemoryStorage::list(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  MAXPORT_ASSIGN_OR_RETURN(const auto parts, State::split("listing", path));
  const NodePointer node = state_->find(parts);
  if (!node) return fail_with(ENOENT, "listing", path);
  if (!node->is_folder) return fail_with(ENOTDIR, "listing", path);
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, entry] : node->entries)
    entries.push_back({name, entry->is_folder ? EntryKind::kDirectory : EntryKind::kFile});
  return entries;
}

Result<> MemoryStorage::make_directories(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  MAXPORT_ASSIGN_OR_RETURN(const auto parts, State::split("creating the folder", path));
  NodePointer node = state_->root;
  for (const std::string& part : parts) {
    NodePointer& entry = node->entries[part];
    if (!entry) entry = state_->make_node(true);
    if (!entry->is_folder) return fail_with(ENOTDIR, "creating the folder", path);
    node = entry;
  }
  return {};
}

Result<> MemoryStorage::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(state_->mutex);
  MAXPORT_ASSIGN_OR_RETURN(const auto from_parts, State::split("renaming", from));
  MAXPORT_ASSIGN_OR_RETURN(const auto to_parts, State::split("renaming to", to));
  const NodePointer from_parent = state_->find_parent(from_parts), to_parent = state_->find_parent(to_parts);
  const std::string doing = fmt::format("renaming {} to", printable(from));
  if (!from_parent || !to_parent || !state_->find(from_parts)) return fail_with(ENOENT, doing, to);
  if (state_->find(to_parts)) return fail_with(EEXIST, doing, to);
  if (std::ranges::mismatch(from_parts, to_parts).in1 == from_parts.end()) return fail_with(EINVAL, doing, to);
  to_parent->entries[to_parts.back()] = from_parent->entries[from_parts.back()];
  from_parent->entries.erase(from_parts.back());
  return {};
}

Result<> MemoryStorage::remove_all(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  MAXPORT_ASSIGN_OR_RETURN(const auto parts, State::split("removing", path));
  if (const NodePointer parent = state_->find_parent(parts)) parent->entries.erase(parts.back());
  return {};
}

Result<> MemoryStorage::sync_directory(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  MAXPORT_ASSIGN_OR_RETURN(const auto parts, State::split("syncing the folder", path));
  const NodePointer node = state_->find(parts);
  if (!node) return fail_with(ENOENT, "syncing the folder", path);
  if (!node->is_folder) return fail_with(ENOTDIR, "syncing the folder", path);
  node->durable_entries = node->entries;
  return {};
}

Result<std::optional<uint64_t>> MemoryStorage::free_bytes(const std::string&) { return std::nullopt; }

}  // namespace maxport
