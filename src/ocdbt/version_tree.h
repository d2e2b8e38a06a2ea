// Versions of an OCDBT database: where the root node of each lies, and the tree of older ones (formats.md 1.2).
//
// Lists are stored column by column: all values of one field, then all of the next.
//
//   versions: n | generation × n | root_height u8 × n | file id × n | offset × n | length × n | num_keys × n
//             | num_tree_bytes × n | num_indirect_value_bytes × n | commit_time le64 × n
//   version nodes: n | generation × n | file id × n | offset × n | length × n | num_generations × n
//                  | commit_time le64 × n | entry_height u8 × n (in the manifest only)
//   body of a version-tree node: arity_log2 u8 | height u8 | data file table | versions or version nodes
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "ocdbt/data_file_table.h"

namespace maxport::ocdbt {

/// Counts over a subtree, filled by writers and trusted by nobody.
struct Statistics {
  uint64_t num_keys = 0;
  uint64_t num_tree_bytes = 0;            ///< encoded size of all nodes
  uint64_t num_indirect_value_bytes = 0;  ///< values that are not inline

  Statistics& operator+=(const Statistics& other);
  bool operator==(const Statistics&) const = default;
};

/// A byte range of a data file; `file` counts in the data file table beside it.
struct Location {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t length = 0;

  /// The root of a version without keys.
  static Location missing() { return {.file = 0, .offset = UINT64_MAX, .length = UINT64_MAX}; }
  bool is_missing() const { return offset == UINT64_MAX && length == UINT64_MAX; }
  bool operator==(const Location&) const = default;
};

struct Version {
  uint64_t generation = 1;
  uint8_t root_height = 0;
  Location root = {};
  Statistics statistics = {};
  uint64_t commit_time = 0;  ///< nanoseconds since 1970
  bool operator==(const Version&) const = default;
};

/// Points at a version-tree node.
struct VersionNodeReference {
  uint64_t generation = 0;  ///< the last one below the node
  Location location = {};
  uint64_t num_generations = 0;
  uint64_t commit_time = 0;  ///< the earliest below the node
  uint8_t height = 0;
  bool operator==(const VersionNodeReference&) const = default;
};

struct VersionNode {
  uint8_t arity_log2 = 4;
  uint8_t height = 0;
  std::vector<DataFile> files;
  std::vector<Version> versions;                 ///< where height is 0
  std::vector<VersionNodeReference> references;  ///< elsewhere
};

inline constexpr uint8_t kMaxVersionTreeArityLog2 = 16;

void encode_versions(const std::vector<Version>& versions, ByteWriter& writer);
/// 1 to 2^arity_log2 versions of one block of generations, in order.
Result<std::vector<Version>> decode_versions(ByteReader& reader, size_t num_files, uint8_t arity_log2);

void encode_version_nodes(const std::vector<VersionNodeReference>& nodes, bool with_heights, ByteWriter& writer);
/// In order of generation. With heights these strictly decrease; otherwise each becomes `height`.
Result<std::vector<VersionNodeReference>> decode_version_nodes(ByteReader& reader, size_t num_files, size_t max_count,
                                                               bool with_heights, uint8_t height = 0);

Bytes encode_version_node(const VersionNode& node);
/// Decodes the body inside the frame.
Result<VersionNode> decode_version_node(ByteSpan body);

Result<uint8_t> decode_arity_log2(ByteReader& reader);

/// A column of locations: file ids, offsets, lengths. A range must end below 2^63; missing() is accepted on request.
void encode_locations(const std::vector<Location>& locations, ByteWriter& writer);
Result<std::vector<Location>> decode_locations(ByteReader& reader, size_t count, size_t num_files, bool may_be_missing);

/// Checks one range of a data file.
Result<> check_location(const Location& location, size_t num_files, size_t offset);

}  // namespace maxport::ocdbt
