#include <algorithm>
#include <set>

#include "ocdbt/database.h"
#include "ocdbt/manifest.h"
#include "ocdbt/node_loader.h"

namespace maxport::ocdbt {
namespace {

constexpr std::string_view kManifestName = "manifest.ocdbt";
constexpr std::string_view kNumberedPrefix = "manifest.";
constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;

using Visitor = std::function<Result<>(std::string_view key, const ValueLocation& where)>;

/// A leaf entry, and the node that keeps it alive.
struct Found {
  std::shared_ptr<const LoadedNode> node;
  const LeafEntry* entry = nullptr;
};

/// The last of the sorted children whose key is not larger than `key`; null when there is none.
const InteriorEntry* child_for(std::span<const InteriorEntry> children, std::string_view key) {
  const auto after = std::ranges::upper_bound(children, key, {}, &InteriorEntry::key);
  return after == children.begin() ? nullptr : &*std::prev(after);
}

class DatabaseReader final : public KeyValueReader {
 public:
  DatabaseReader(Storage& storage, std::string root, std::optional<NodePlace> root_node)
      : root_(std::move(root)), root_node_(std::move(root_node)), loader_(storage, root_) {}

  Result<> check_root() {
    if (root_node_) MAXPORT_RETURN_IF_ERROR(loader_.load(*root_node_, ""));
    return {};
  }

  Result<std::optional<Bytes>> read(std::string_view key, uint64_t max_bytes) override {
    MAXPORT_ASSIGN_OR_RETURN(const Found found, find(key));
    if (!found.entry) return std::nullopt;
    const uint64_t length = found.entry->value.length;
    if (length > max_bytes)
      return fail(ErrorKind::kResourceLimit, "{}: it has {} bytes, at most {} are allowed", context(key), length,
                  max_bytes);
    return with_context(read_found(found, 0, length), context(key));
  }

  Result<Bytes> read_range(std::string_view key, uint64_t offset, uint64_t length) override {
    MAXPORT_ASSIGN_OR_RETURN(const Found found, find(key));
    if (!found.entry) return fail(ErrorKind::kNotFound, "{}: there is no such key", context(key));
    const uint64_t size = found.entry->value.length;
    if (offset > size || length > size - offset)
      return fail(ErrorKind::kCorruptData, "{}: the value ends at byte {}, but {} bytes from offset {} are needed",
                  context(key), size, length, offset);
    return with_context(read_found(found, offset, length), context(key));
  }

  Result<std::optional<ValueLocation>> locate(std::string_view key) override {
    MAXPORT_ASSIGN_OR_RETURN(const Found found, find(key));
    if (!found.entry) return std::nullopt;
    return location(*found.node, *found.entry);
  }

  Result<> list(std::string_view prefix, const Visitor& visit) override {
    if (!root_node_) return {};
    Listing listing{.wanted = prefix, .visit = visit, .previous_key = {}, .visited = {}};
    MAXPORT_ASSIGN_OR_RETURN(const std::shared_ptr<const LoadedNode> node, loader_.load(*root_node_, ""));
    return list_node(*node, "", listing);
  }

 private:
  struct Listing {
    std::string_view wanted;
    const Visitor& visit;
    std::optional<std::string> previous_key;
    std::set<std::pair<std::string, uint64_t>> visited;
  };

  std::string context(std::string_view key) const {
    return fmt::format("reading key \"{}\" of the database {}", printable(key), printable(root_));
  }

  /// Descends from the root; the height falls by one from node to node, so this ends.
  Result<Found> find(std::string_view key) {
    if (!root_node_) return Found();
    MAXPORT_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedNode> node, loader_.load(*root_node_, ""));
    while (node->node.height() > 0) {
      const InteriorEntry* entry = child_for(node->node.children(), key);
      if (!entry) return Found();
      const std::string_view dropped = entry->key.substr(0, entry->subtree_prefix_length);
      if (!key.starts_with(dropped)) return Found();
      key.remove_prefix(dropped.size());
      MAXPORT_ASSIGN_OR_RETURN(node, loader_.load(node->child(*entry), entry->key.substr(dropped.size())));
    }
    const auto leaves = node->node.leaves();
    const auto entry = std::ranges::lower_bound(leaves, key, {}, &LeafEntry::key);
    if (entry == leaves.end() || entry->key != key) return Found();
    return Found{.node = node, .entry = &*entry};
  }

  Result<Bytes> read_found(const Found& found, uint64_t offset, uint64_t length) {
    const LeafEntry& entry = *found.entry;
    if (!entry.is_inline())
      return loader_.read(found.node->paths[entry.value.file], entry.value.offset + offset, length);
    const ByteSpan part = entry.inline_bytes().subspan(offset, length);
    return Bytes(part.begin(), part.end());
  }

  ValueLocation location(const LoadedNode& node, const LeafEntry& entry) const {
    if (entry.is_inline()) return {.path = {}, .offset = 0, .length = entry.value.length};
    return {.path = loader_.full_path(node.paths[entry.value.file]),
            .offset = entry.value.offset,
            .length = entry.value.length};
  }

  /// `above` is what all keys of the node lack at the front.
  Result<> list_node(const LoadedNode& node, const std::string& above, Listing& listing) {
    // Nodes that share children could list more keys than any machine can count.
    if (!listing.visited.emplace(node.place.path, node.place.location.offset).second)
      return fail(ErrorKind::kCorruptData, "B+tree node at offset {} of {}: it is reached twice",
                  node.place.location.offset, printable(loader_.full_path(node.place.path)));
    const size_t shared = std::min(above.size(), listing.wanted.size());
    if (std::string_view(above).substr(0, shared) != listing.wanted.substr(0, shared)) return {};
    const std::string_view rest = listing.wanted.substr(shared);
    return node.node.height() == 0 ? list_leaves(node, above, rest, listing)
                                   : list_children(node, above, rest, listing);
  }

  Result<> list_leaves(const LoadedNode& node, const std::string& above, std::string_view rest, Listing& listing) {
    const auto leaves = node.node.leaves();
    for (auto entry = std::ranges::lower_bound(leaves, rest, {}, &LeafEntry::key); entry != leaves.end(); ++entry) {
      if (!entry->key.starts_with(rest)) break;
      std::string key = above;
      key += entry->key;
      MAXPORT_RETURN_IF_ERROR(check_key(node, key, listing));
      MAXPORT_RETURN_IF_ERROR(listing.visit(key, location(node, *entry)));
      listing.previous_key = std::move(key);
    }
    return {};
  }

  Result<> list_children(const LoadedNode& node, const std::string& above, std::string_view rest, Listing& listing) {
    const auto children = node.node.children();
    const InteriorEntry* first = child_for(children, rest);
    const size_t start = first ? static_cast<size_t>(first - children.data()) : 0;
    for (const InteriorEntry& entry : children.subspan(start)) {
      if (entry.key > rest && !entry.key.starts_with(rest)) break;
      const std::string_view dropped = entry.key.substr(0, entry.subtree_prefix_length);
      const std::string below = above + std::string(dropped);
      MAXPORT_ASSIGN_OR_RETURN(const std::shared_ptr<const LoadedNode> child,
                               loader_.load(node.child(entry), entry.key.substr(dropped.size())));
      MAXPORT_RETURN_IF_ERROR(list_node(*child, below, listing));
    }
    return {};
  }

  Result<> check_key(const LoadedNode& node, std::string_view key, const Listing& listing) const {
    const bool in_order = !listing.previous_key || *listing.previous_key < key;
    if (in_order && key.size() <= kMaxKeyBytes) return {};
    return fail(ErrorKind::kCorruptData, "B+tree node at offset {} of {}: the key \"{}\" of {} bytes is {}",
                node.place.location.offset, printable(loader_.full_path(node.place.path)),
                printable(key.substr(0, 200)), key.size(), in_order ? "too long" : "not larger than the one before it");
  }

  const std::string root_;
  const std::optional<NodePlace> root_node_;
  NodeLoader loader_;
};

bool is_numbered_manifest(std::string_view name) {
  if (!name.starts_with(kNumberedPrefix)) return false;
  name.remove_prefix(kNumberedPrefix.size());
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// What a folder without a manifest holds, so that a wrong folder can be told from a damaged one.
std::string describe_folder(Storage& storage, const std::string& root) {
  const auto entries = storage.list(root);
  if (!entries) return "the folder cannot be listed";
  if (entries->empty()) return "the folder is empty";
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(entries->size(), 8); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", printable((*entries)[i].name));
  return fmt::format("the folder holds {}{}", names, entries->size() > 8 ? ", ..." : "");
}

Result<Manifest> read_manifest(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string text, storage.read_text(path, kMaxManifestBytes));
  return with_context(decode_manifest(as_bytes(text)), printable(path));
}

/// The manifest that holds the newest version, and its path.
Result<std::pair<Manifest, std::string>> newest_manifest(Storage& storage, const std::string& root) {
  std::string path = join_path(root, kManifestName);
  MAXPORT_ASSIGN_OR_RETURN(const std::optional<EntryKind> kind, storage.kind(path));
  if (!kind)
    return fail(ErrorKind::kNotFound, "{}: no such file, so {} is no finished OCDBT database; {}", printable(path),
                printable(root), describe_folder(storage, root));
  MAXPORT_ASSIGN_OR_RETURN(Manifest manifest, read_manifest(storage, path));
  if (manifest.config.manifest_kind == ManifestKind::kSingle) return std::pair(std::move(manifest), std::move(path));

  MAXPORT_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage.list(root));
  std::string newest;
  for (const DirectoryEntry& entry : entries)
    if (is_numbered_manifest(entry.name)) newest = std::max(newest, entry.name);
  // A database that was configured but never written to.
  if (newest.empty()) return std::pair(Manifest(), std::move(path));
  path = join_path(root, newest);
  MAXPORT_ASSIGN_OR_RETURN(manifest, read_manifest(storage, path));
  if (manifest.config.manifest_kind != ManifestKind::kSingle)
    return fail(ErrorKind::kCorruptData, "{}: manifest_kind is 1 (numbered), expected 0 in a numbered manifest",
                printable(path));
  return std::pair(std::move(manifest), std::move(path));
}

}  // namespace

Result<std::unique_ptr<KeyValueReader>> open_database(Storage& storage, std::string root) {
  MAXPORT_ASSIGN_OR_RETURN(const auto newest, newest_manifest(storage, root));
  const auto& [manifest, path] = newest;
  std::optional<NodePlace> root_node;
  if (!manifest.versions.empty() && !manifest.versions.back().root.is_missing()) {
    const Version& version = manifest.versions.back();
    const DataFile& file = manifest.files[version.root.file];
    MAXPORT_ASSIGN_OR_RETURN(std::string node_path, with_context(resolve_path("", file.path()), printable(path)));
    root_node = NodePlace{.path = std::move(node_path),
                          .inherited = file.base_path,
                          .location = version.root,
                          .height = version.root_height};
  }
  auto reader = std::make_unique<DatabaseReader>(storage, std::move(root), std::move(root_node));
  MAXPORT_RETURN_IF_ERROR(reader->check_root());
  return reader;
}

}  // namespace maxport::ocdbt
