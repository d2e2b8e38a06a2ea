// Reads B+tree nodes and byte ranges of data files, keeping a bounded number of both at hand.
//
// Safe for any number of threads.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "ocdbt/btree_node.h"
#include "ocdbt/lru_cache.h"
#include "storage/storage.h"

namespace maxport::ocdbt {

/// Where a node lies and what its parent knows about it.
struct NodePlace {
  std::string path;       ///< relative to the database's root
  std::string inherited;  ///< what the paths in the node's table are relative to
  Location location;
  uint8_t height = 0;
};

struct LoadedNode {
  NodePlace place;
  BtreeNode node;
  std::vector<std::string> paths;  ///< of the node's data files, relative to the database's root

  NodePlace child(const InteriorEntry& entry) const;
};

class NodeLoader {
 public:
  NodeLoader(Storage& storage, std::string root);

  /// Checks the node's height, and that its first key is not smaller than `least_key`.
  Result<std::shared_ptr<const LoadedNode>> load(const NodePlace& place, std::string_view least_key);

  /// Reads a range of a data file. Whether it lies in the file is known before memory is taken for it.
  Result<Bytes> read(const std::string& path, uint64_t offset, uint64_t length);

  /// Relative to the root, made a path of the storage.
  std::string full_path(const std::string& path) const { return join_path(root_, path); }

 private:
  using NodeKey = std::tuple<std::string, std::string, uint64_t, uint64_t>;

  Result<std::shared_ptr<const ReadableFile>> open(const std::string& path);
  Result<LoadedNode> read_node(const NodePlace& place);

  Storage& storage_;
  const std::string root_;
  LruCache<NodeKey, LoadedNode> nodes_;
  LruCache<std::string, ReadableFile> files_;
};

}  // namespace maxport::ocdbt
