#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/checked.h"
#include "base/digest.h"
#include "ocdbt/database.h"
#include "ocdbt/manifest.h"
#include "ocdbt/tree_builder.h"

namespace maxport::ocdbt {
namespace {

constexpr std::string_view kManifestName = "manifest.ocdbt";
constexpr std::string_view kNodeFolder = "d/";
/// Smaller values are gathered up to so many bytes, others written from where they lie.
constexpr size_t kBufferBytes = size_t{512} << 10, kDirectBytes = size_t{128} << 10;

/// Folders of the database whose own names are durable.
class SyncedFolders {
 public:
  /// A file's name is durable once its folder is, and that one's name once its own folder is, and so on.
  Result<> sync(Storage& storage, const std::string& root, const std::string& folder) {
    const auto sync_one = [&](const std::string& at) { return storage.sync_directory(at == "." ? root : join_path(root, at)); };
    MAXPORT_RETURN_IF_ERROR(sync_one(folder));
    for (std::string at = folder; at != "."; at = parent_path(at)) {
      const std::lock_guard lock(mutex_);
      if (known_.contains(at)) continue;
      MAXPORT_RETURN_IF_ERROR(sync_one(parent_path(at)));
      known_.insert(at);
    }
    return {};
  }

 private:
  std::mutex mutex_;
  std::set<std::string> known_;
};

/// Appends to a file in large pieces; creates it and its folders when the first byte comes.
class BufferedFile {
 public:
  BufferedFile(Storage& storage, SyncedFolders& folders, std::string root, std::string name)
      : storage_(storage), folders_(folders), root_(std::move(root)), name_(std::move(name)) {}

  uint64_t size() const { return written_ + buffer_.size(); }
  bool is_empty() const { return size() == 0; }
  void expect(uint64_t bytes) { expected_ = bytes; }

  Result<> append(ByteSpan bytes) {
    if (bytes.size() > kBufferBytes - buffer_.size() || bytes.size() >= kDirectBytes) MAXPORT_RETURN_IF_ERROR(flush());
    if (bytes.size() >= kDirectBytes) return write(bytes);
    buffer_.reserve(kBufferBytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }

  /// Writes what is left. Nothing happens for a file that never had a byte.
  Result<> finish(bool sync) {
    MAXPORT_RETURN_IF_ERROR(flush());
    buffer_ = {};
    if (!file_) return {};
    if (sync) MAXPORT_RETURN_IF_ERROR(file_->sync());
    MAXPORT_RETURN_IF_ERROR(file_->close());
    return sync ? folders_.sync(storage_, root_, parent_path(name_)) : Result<>();
  }

 private:
  Result<> flush() {
    if (buffer_.empty()) return {};
    MAXPORT_RETURN_IF_ERROR(write(buffer_));
    buffer_.clear();
    return {};
  }

  Result<> write(ByteSpan bytes) {
    if (!file_) {
      const std::string path = join_path(root_, name_);
      MAXPORT_RETURN_IF_ERROR(storage_.make_directories(parent_path(path)));
      MAXPORT_ASSIGN_OR_RETURN(file_, storage_.create(path));
      file_->reserve(expected_);
    }
    MAXPORT_RETURN_IF_ERROR(file_->write_at(written_, bytes));
    written_ += bytes.size();
    return {};
  }

  Storage& storage_;
  SyncedFolders& folders_;
  const std::string root_;
  const std::string name_;
  std::unique_ptr<WritableFile> file_;
  uint64_t written_ = 0, expected_ = 0;
  Bytes buffer_;
};

/// What a segment holds, in as little memory as two million keys ask for.
class Run {
 public:
  explicit Run(const SegmentRecord& record) {
    size_t key_bytes = 0, inline_bytes = 0;
    for (const StoredValue& value : record.values) {
      key_bytes += value.key.size();
      if (value.inline_value) inline_bytes += value.inline_value->size();
    }
    keys_.reserve(key_bytes);
    inline_values_.reserve(inline_bytes + 1);
    items_.reserve(record.values.size());
    for (const StoredValue& value : record.values) {
      const uint64_t offset = value.inline_value ? inline_values_.size() : value.offset;
      items_.push_back({keys_.size(), offset, value.length, static_cast<uint16_t>(value.key.size()),
                        value.inline_value.has_value()});
      keys_ += value.key;
      if (value.inline_value)
        inline_values_.insert(inline_values_.end(), value.inline_value->begin(), value.inline_value->end());
    }
    // One byte more than needed, so that an empty value has an address too.
    inline_values_.push_back({});
  }

  size_t size() const { return items_.size(); }
  std::string_view key(size_t i) const {
    return std::string_view(keys_).substr(items_[i].key_start, items_[i].key_length);
  }
  LeafEntry entry(size_t i, uint32_t file) const {
    const Item& item = items_[i];
    if (item.is_inline)
      return {.key = key(i),
              .value = {.file = 0, .offset = 0, .length = item.length},
              .inline_value = inline_values_.data() + item.offset};
    return {.key = key(i), .value = {.file = file, .offset = item.offset, .length = item.length}};
  }

 private:
  struct Item {
    uint64_t key_start;
    uint64_t offset;  // in the data file, or in inline_values_
    uint64_t length;
    uint16_t key_length;
    bool is_inline;
  };
  std::string keys_;
  Bytes inline_values_;
  std::vector<Item> items_;
};

Result<> check_key(std::string_view key) {
  if (key.size() <= kMaxKeyBytes) return {};
  return fail(ErrorKind::kInvalidArgument, "the key \"{}...\" has {} bytes, an OCDBT database takes at most {}",
              printable(key.substr(0, 100)), key.size(), kMaxKeyBytes);
}

/// Stock's split: the base path is what precedes the last folder and the name.
DataFile split_path(const std::string& path) {
  const size_t name = path.rfind('/');
  const size_t folder = name == std::string::npos || name == 0 ? name : path.rfind('/', name - 1);
  const size_t base = name == std::string::npos || folder == std::string::npos ? 0 : folder + 1;
  return {path.substr(0, base), path.substr(base)};
}

class DatabaseWriter final : public KeyValueWriter {
 public:
  DatabaseWriter(Storage& storage, std::string root, WriterOptions options)
      : storage_(storage), root_(std::move(root)), options_(std::move(options)) {}

  Result<std::unique_ptr<Segment>> start_segment(uint64_t index) override;
  Result<> adopt(SegmentRecord record) override;
  Result<> finish(bool sync) override;

  /// Takes over what a finished segment holds.
  void keep(const SegmentRecord& record) {
    Run run(record);
    const std::lock_guard lock(mutex_);
    runs_.insert_or_assign(record.index, std::pair(std::move(run), record.file));
  }

 private:
  struct Place {
    uint32_t run;
    uint32_t item;
  };

  std::string file_name(std::string_view folder, std::string_view what) const {
    return fmt::format("{}{}", folder, xxh128_hex(as_bytes(fmt::format("{}/{}", options_.seed, what))));
  }

  Result<> claim_index(uint64_t index) {
    const std::lock_guard lock(mutex_);
    if (indices_.insert(index).second) return {};
    return fail(ErrorKind::kInternal, "segment {} of the database {} is written twice", index, printable(root_));
  }

  Result<> check_record(const SegmentRecord& record) const;
  Result<std::vector<Place>> sorted_places() const;
  Result<BuiltTree> write_tree(const DataFile& node_file, bool sync);

  Storage& storage_;
  const std::string root_;
  const WriterOptions options_;
  SyncedFolders folders_;
  std::mutex mutex_;
  std::set<uint64_t> indices_;
  std::map<uint64_t, std::pair<Run, std::string>> runs_;  // by the segment's index, with the data file
  std::vector<const Run*> ordered_runs_;
};

class DatabaseSegment final : public Segment {
 public:
  DatabaseSegment(Storage& storage, SyncedFolders& folders, const std::string& root, std::string name, const WriterOptions& options,
                  DatabaseWriter& writer, uint64_t index)
      : options_(options), writer_(writer), name_(std::move(name)), file_(storage, folders, root, name_) {
    record_.index = index;
  }

  void expect(uint64_t bytes) override { file_.expect(bytes); }

  Result<> put(std::string_view key, ByteSpan value) override {
    MAXPORT_RETURN_IF_ERROR(check_key(key));
    StoredValue stored{.key = std::string(key), .offset = 0, .length = value.size(), .inline_value = {}};
    if (value.size() <= std::min<uint64_t>(options_.max_inline_value_bytes, kMaxInlineBytes)) {
      stored.inline_value.emplace(value.begin(), value.end());
    } else {
      stored.offset = file_.size();
      MAXPORT_RETURN_IF_ERROR(file_.append(value));
    }
    record_.values.push_back(std::move(stored));
    return {};
  }

  Result<SegmentRecord> finish(bool sync) override {
    record_.bytes = file_.size();
    if (!file_.is_empty()) record_.file = name_;
    MAXPORT_RETURN_IF_ERROR(file_.finish(sync));
    writer_.keep(record_);
    return std::move(record_);
  }

 private:
  const WriterOptions& options_;
  DatabaseWriter& writer_;
  const std::string name_;
  BufferedFile file_;
  SegmentRecord record_;
};

Result<std::unique_ptr<Segment>> DatabaseWriter::start_segment(uint64_t index) {
  const std::string name = file_name(options_.data_folder, fmt::format("segment/{}", index));
  MAXPORT_RETURN_IF_ERROR(resolve_path("", name));
  MAXPORT_RETURN_IF_ERROR(claim_index(index));
  return std::make_unique<DatabaseSegment>(storage_, folders_, root_, name, options_, *this, index);
}

/// Records come back from a journal, so they are looked at like any other input.
Result<> DatabaseWriter::check_record(const SegmentRecord& record) const {
  uint64_t size = 0;
  if (!record.file.empty()) {
    MAXPORT_ASSIGN_OR_RETURN(const std::string path, resolve_path("", record.file));
    MAXPORT_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, storage_.open(join_path(root_, path)));
    size = file->size();
  }
  if (size < record.bytes)
    return fail(ErrorKind::kCorruptData, "{} has {} bytes, but {} were written", printable(record.file), size,
                record.bytes);
  for (const StoredValue& value : record.values) {
    MAXPORT_RETURN_IF_ERROR(check_key(value.key));
    const auto end = checked_add(value.offset, value.length);
    const bool good = value.inline_value ? value.inline_value->size() == value.length && value.length <= kMaxInlineBytes
                                         : end && *end <= record.bytes && !record.file.empty();
    if (!good)
      return fail(ErrorKind::kCorruptData, "key \"{}\": {} bytes at offset {} do not fit a data file of {} bytes",
                  printable(value.key), value.length, value.offset, record.bytes);
  }
  return {};
}

Result<> DatabaseWriter::adopt(SegmentRecord record) {
  const std::string context = fmt::format("adopting segment {} of the database {}", record.index, printable(root_));
  MAXPORT_RETURN_IF_ERROR(with_context(check_record(record), context));
  MAXPORT_RETURN_IF_ERROR(claim_index(record.index));
  keep(record);
  return {};
}

Result<std::vector<DatabaseWriter::Place>> DatabaseWriter::sorted_places() const {
  std::vector<Place> places;
  size_t count = 0;
  for (const Run* run : ordered_runs_) count += run->size();
  places.reserve(count);
  for (uint32_t run = 0; run < ordered_runs_.size(); ++run)
    for (uint32_t item = 0; item < ordered_runs_[run]->size(); ++item) places.push_back({run, item});
  const auto key = [&](const Place& place) { return ordered_runs_[place.run]->key(place.item); };
  std::ranges::sort(places, {}, key);
  const auto twice = std::ranges::adjacent_find(places, {}, key);
  if (twice != places.end())
    return fail(ErrorKind::kInternal, "the key \"{}\" of the database {} is written twice", printable(key(*twice)),
                printable(root_));
  return places;
}

Result<BuiltTree> DatabaseWriter::write_tree(const DataFile& node_file, bool sync) {
  ordered_runs_.clear();
  std::vector<DataFile> files;
  for (const auto& [index, run] : runs_) {
    ordered_runs_.push_back(&run.first);
    files.push_back(split_path(run.second));
  }
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<Place> places, sorted_places());
  BufferedFile file(storage_, folders_, root_, node_file.path());
  const auto store = [&file](ByteSpan node) -> Result<uint64_t> {
    const uint64_t offset = file.size();
    MAXPORT_RETURN_IF_ERROR(file.append(node));
    return offset;
  };
  TreeBuilder builder(std::move(files), node_file, options_.max_decoded_node_bytes, options_.zstd_level, store);
  MAXPORT_ASSIGN_OR_RETURN(const BuiltTree tree, builder.build(places.size(), [&](size_t i) {
    return ordered_runs_[places[i].run]->entry(places[i].item, places[i].run);
  }));
  MAXPORT_RETURN_IF_ERROR(file.finish(sync));
  return tree;
}

Result<> DatabaseWriter::finish(bool sync) {
  const std::lock_guard lock(mutex_);
  MAXPORT_RETURN_IF_ERROR(storage_.make_directories(root_));
  DataFile node_file{.base_path = {}, .relative_path = file_name(kNodeFolder, "nodes")};
  MAXPORT_ASSIGN_OR_RETURN(const BuiltTree tree, write_tree(node_file, sync));
  // Stock names an empty path for the root of a version without keys.
  if (tree.root.is_missing()) node_file = {};
  Manifest manifest;
  manifest.config.uuid = options_.uuid;
  manifest.config.max_inline_value_bytes = options_.max_inline_value_bytes;
  manifest.config.max_decoded_node_bytes = options_.max_decoded_node_bytes;
  manifest.config.zstd_level = options_.zstd_level;
  manifest.files = {node_file};
  manifest.versions = {{.generation = 1,
                        .root_height = tree.height,
                        .root = tree.root,
                        .statistics = tree.statistics,
                        .commit_time = options_.commit_time_nanoseconds}};
  MAXPORT_ASSIGN_OR_RETURN(const Bytes bytes, encode_manifest(manifest));
  MAXPORT_ASSIGN_OR_RETURN(const auto file, storage_.create(join_path(root_, kManifestName)));
  MAXPORT_RETURN_IF_ERROR(file->write_at(0, bytes));
  if (sync) MAXPORT_RETURN_IF_ERROR(file->sync());
  MAXPORT_RETURN_IF_ERROR(file->close());
  return sync ? storage_.sync_directory(root_) : Result<>();
}

}  // namespace

std::unique_ptr<KeyValueWriter> create_database(Storage& storage, std::string root, WriterOptions options) {
  return std::make_unique<DatabaseWriter>(storage, std::move(root), std::move(options));
}

}  // namespace maxport::ocdbt
