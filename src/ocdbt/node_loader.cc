#include "ocdbt/node_loader.h"

#include "ocdbt/database.h"
#include "ocdbt/frame.h"

namespace maxport::ocdbt {
namespace {

constexpr uint64_t kMaxCachedNodeBytes = uint64_t{256} << 20;

}  // namespace

NodePlace LoadedNode::child(const InteriorEntry& entry) const {
  return {.path = paths[entry.child.file],
          .inherited = place.inherited + node.files()[entry.child.file].base_path,
          .location = entry.child,
          .height = static_cast<uint8_t>(place.height - 1)};
}

NodeLoader::NodeLoader(Storage& storage, std::string root)
    : storage_(storage), root_(std::move(root)), nodes_(kMaxCachedNodeBytes), files_(kMaxOpenFiles) {}

Result<std::shared_ptr<const ReadableFile>> NodeLoader::open(const std::string& path) {
  if (auto file = files_.find(path)) return file;
  MAXPORT_ASSIGN_OR_RETURN(std::shared_ptr<const ReadableFile> file, storage_.open(full_path(path)));
  files_.insert(path, file, 1);
  return file;
}

Result<Bytes> NodeLoader::read(const std::string& path, uint64_t offset, uint64_t length) {
  MAXPORT_ASSIGN_OR_RETURN(const std::shared_ptr<const ReadableFile> file, open(path));
  if (offset > file->size() || length > file->size() - offset)
    return fail(ErrorKind::kCorruptData, "{} ends at byte {}, but {} bytes from offset {} are needed; was it cut off?",
                printable(full_path(path)), file->size(), length, offset);
  Bytes bytes(length);
  MAXPORT_RETURN_IF_ERROR(file->read_at(offset, bytes));
  return bytes;
}

Result<LoadedNode> NodeLoader::read_node(const NodePlace& place) {
  if (place.location.length > kMaxBodyBytes)
    return fail(ErrorKind::kCorruptData, "it has {} bytes, at most {} are allowed", place.location.length,
                kMaxBodyBytes);
  MAXPORT_ASSIGN_OR_RETURN(const Bytes frame, read(place.path, place.location.offset, place.location.length));
  Bytes keep;
  MAXPORT_ASSIGN_OR_RETURN(const ByteSpan body, decode_frame(frame, kBtreeNodeMagic, "the node", keep));
  LoadedNode loaded{.place = place, .node = {}, .paths = {}};
  MAXPORT_ASSIGN_OR_RETURN(loaded.node, decode_btree_node(body));
  if (loaded.node.height() != place.height)
    return fail(ErrorKind::kCorruptData, "it has height {}, expected {}", loaded.node.height(), place.height);
  for (const DataFile& file : loaded.node.files()) {
    MAXPORT_ASSIGN_OR_RETURN(std::string path, resolve_path(place.inherited, file.path()));
    loaded.paths.push_back(std::move(path));
  }
  return loaded;
}

Result<std::shared_ptr<const LoadedNode>> NodeLoader::load(const NodePlace& place, std::string_view least_key) {
  const NodeKey key(place.path, place.inherited, place.location.offset, place.location.length);
  const auto context = [&] {
    return fmt::format("B+tree node at offset {} of {}", place.location.offset, printable(full_path(place.path)));
  };
  std::shared_ptr<const LoadedNode> loaded = nodes_.find(key);
  if (!loaded) {
    MAXPORT_ASSIGN_OR_RETURN(LoadedNode node, with_context(read_node(place), context()));
    const uint64_t cost = node.node.memory_bytes();
    loaded = std::make_shared<const LoadedNode>(std::move(node));
    nodes_.insert(key, loaded, cost);
  }
  // A cached node may be reached again through another parent.
  if (loaded->place.height != place.height)
    return fail(ErrorKind::kCorruptData, "{}: it has height {}, expected {}", context(), loaded->place.height,
                place.height);
  if (loaded->node.first_key() < least_key)
    return fail(ErrorKind::kCorruptData, "{}: its first key \"{}\" is smaller than \"{}\", the one its parent states",
                context(), printable(loaded->node.first_key()), printable(least_key));
  return loaded;
}

}  // namespace maxport::ocdbt
