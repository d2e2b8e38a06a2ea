// One node of the B+tree that leads from keys to values (formats.md 1.4). Pure functions of the body inside the frame.
//
//   body: height u8 | data file table | num_entries n varint | columns
//   keys: key_prefix_length × n-1 | key_suffix_length × n | subtree_common_prefix_length × n, interior nodes only
//         | key_suffix bytes
//   leaf, height 0: value_length × n | value_kind u8 × n | file id × values out of line | offset × values out of line
//                   | inline values
//   interior: file id × n | offset × n | length × n | num_keys × n | num_tree_bytes × n
//             | num_indirect_value_bytes × n
//
// Keys strictly increase. They lack whatever prefix the parents' entries account for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "ocdbt/data_file_table.h"
#include "ocdbt/version_tree.h"

namespace maxport::ocdbt {

inline constexpr size_t kMaxKeyBytes = 65535;
inline constexpr size_t kMaxNodeEntries = 1048576;
inline constexpr uint64_t kMaxInlineBytes = uint64_t{1} << 20;

/// A key and its value, which lies in a data file or in the node.
struct LeafEntry {
  std::string_view key = {};
  Location value = {};                      ///< only the length counts for inline values
  const std::byte* inline_value = nullptr;  ///< not null for inline values, also empty ones

  bool is_inline() const { return inline_value != nullptr; }
  ByteSpan inline_bytes() const { return {inline_value, value.length}; }
};

/// A child node and the smallest key below it.
struct InteriorEntry {
  std::string_view key = {};
  uint32_t subtree_prefix_length = 0;  ///< bytes of `key` that all keys below share and that the child does not store
  Location child = {};
  Statistics statistics = {};
};

/// A decoded node. Entries point into it.
class BtreeNode {
 public:
  BtreeNode() = default;
  BtreeNode(BtreeNode&&) = default;
  BtreeNode& operator=(BtreeNode&&) = default;

  uint8_t height() const { return height_; }
  const std::vector<DataFile>& files() const { return files_; }
  /// Empty unless height is 0.
  std::span<const LeafEntry> leaves() const { return leaves_; }
  /// Empty when height is 0.
  std::span<const InteriorEntry> children() const { return children_; }
  std::string_view first_key() const { return height_ == 0 ? leaves_.front().key : children_.front().key; }
  /// What the node takes in memory, for a cache.
  uint64_t memory_bytes() const;

 private:
  friend class NodeDecoder;
  uint8_t height_ = 0;
  std::vector<DataFile> files_;
  std::vector<char> keys_;
  Bytes inline_values_;
  std::vector<LeafEntry> leaves_;
  std::vector<InteriorEntry> children_;
};

/// Decodes a body; kCorruptData with the offset for any deviation.
Result<BtreeNode> decode_btree_node(ByteSpan body);

/// Encodes 1 to kMaxNodeEntries sorted entries. `dropped_prefix` bytes are left out of each key; entries' files count
/// in `files`.
Bytes encode_leaf_node(std::span<const LeafEntry> entries, const std::vector<DataFile>& files, size_t dropped_prefix);
Bytes encode_interior_node(uint8_t height, std::span<const InteriorEntry> entries, const std::vector<DataFile>& files,
                           size_t dropped_prefix);

/// Bytes that two keys have in common at the front.
size_t common_prefix_length(std::string_view a, std::string_view b);

}  // namespace maxport::ocdbt
