// Builds the B+tree over sorted keys: cuts each level into nodes of about equal size, encodes them, and hands them on.
// What it does depends on its input and the limit alone.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ocdbt/btree_node.h"

namespace maxport::ocdbt {

/// How a level is cut. The sizes are estimates of the decoded entries, the same that stock makes.
struct CutLimits {
  uint64_t max_bytes = 0;  ///< of a node
  size_t min_entries = 1;  ///< a node has at least so many, except the last
  size_t max_entries = kMaxNodeEntries;
};

/// The end of each node when entries of these sizes are distributed: size_of(i) for i below count, in bytes.
std::vector<size_t> cut_level(size_t count, const std::function<uint64_t(size_t)>& size_of, const CutLimits& limits);

/// The root of a finished tree; `location.file` is 0, the file that takes the nodes.
struct BuiltTree {
  uint8_t height = 0;
  Location root = Location::missing();
  Statistics statistics = {};
};

class TreeBuilder {
 public:
  /// Stores an encoded node and says at which offset of the node file.
  using Store = std::function<Result<uint64_t>(ByteSpan node)>;

  /// `value_files` is what the entries' locations count in; `node_file` is where `store` puts nodes. 0 for
  /// `max_decoded_node_bytes` means no limit.
  TreeBuilder(std::vector<DataFile> value_files, DataFile node_file, uint64_t max_decoded_node_bytes,
              std::optional<int> zstd_level, Store store);

  /// Builds the tree over `count` entries; entry_at(i) returns them sorted, and keys stay valid meanwhile.
  Result<BuiltTree> build(size_t count, const std::function<LeafEntry(size_t)>& entry_at);

 private:
  Result<InteriorEntry> store_leaf(std::vector<LeafEntry> entries, bool is_root);
  Result<InteriorEntry> store_interior(uint8_t height, std::span<const InteriorEntry> entries, bool is_root);
  Result<InteriorEntry> store_node(ByteSpan body, std::string_view first_key, size_t dropped_prefix,
                                   Statistics statistics);

  const std::vector<DataFile> value_files_;
  std::vector<uint32_t> ranks_;  // position of each value file in stock's order
  const DataFile node_file_;
  const uint64_t max_decoded_node_bytes_;
  const std::optional<int> zstd_level_;
  const Store store_;
};

}  // namespace maxport::ocdbt
