#include "ocdbt/version_tree.h"

#include <algorithm>

#include "base/checked.h"

namespace maxport::ocdbt {
namespace {

/// Reads one value for each element: read_column(reader, versions, &Version::generation, read).
template <class Element, class Field, class Read>
Result<> read_column(std::vector<Element>& elements, Field Element::* field, Read read) {
  for (Element& element : elements) {
    MAXPORT_ASSIGN_OR_RETURN(const auto value, read());
    element.*field = static_cast<Field>(value);
  }
  return {};
}

template <class Element>
Result<> read_locations(ByteReader& reader, std::vector<Element>& elements, Location Element::* field, size_t num_files,
                        bool may_be_missing) {
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<Location> locations,
                           decode_locations(reader, elements.size(), num_files, may_be_missing));
  for (size_t i = 0; i < elements.size(); ++i) elements[i].*field = locations[i];
  return {};
}

/// The count at the head of a list of which each element has at least `min_bytes`.
Result<uint64_t> read_count(ByteReader& reader, std::string_view what, uint64_t max_count, uint64_t min_bytes) {
  const size_t offset = reader.offset();
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t count, reader.read_varint(64));
  if (count > max_count || count > reader.remaining() / min_bytes)
    return fail(ErrorKind::kCorruptData, "{} {} stated at offset {}, at most {} are allowed", count, what, offset,
                std::min(max_count, reader.remaining() / min_bytes));
  return count;
}

Result<> check_generations(const std::vector<Version>& versions, uint8_t arity_log2, size_t offset) {
  for (size_t i = 0; i < versions.size(); ++i) {
    const uint64_t previous = i == 0 ? 0 : versions[i - 1].generation;
    if (versions[i].generation <= previous)
      return fail(ErrorKind::kCorruptData, "version {} at offset {} has generation {}, expected more than {}", i,
                  offset, versions[i].generation, previous);
    if (versions[i].root.is_missing() && (versions[i].root_height != 0 || versions[i].statistics != Statistics()))
      return fail(ErrorKind::kCorruptData, "version {} at offset {} has no root, but a height or statistics", i,
                  offset);
  }
  const uint64_t last = versions.back().generation;
  const uint64_t first_of_block = last - (last - 1) % (uint64_t{1} << arity_log2);
  if (versions.front().generation < first_of_block)
    return fail(ErrorKind::kCorruptData,
                "the versions at offset {} reach from generation {} to {}, expected none before {}", offset,
                versions.front().generation, last, first_of_block);
  return {};
}

Result<> check_order(const std::vector<VersionNodeReference>& nodes, bool with_heights, size_t offset) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].generation <= (i == 0 ? 0 : nodes[i - 1].generation))
      return fail(ErrorKind::kCorruptData, "version node {} at offset {} has generation {}, which is out of order", i,
                  offset, nodes[i].generation);
    if (with_heights && (nodes[i].height == 0 || (i > 0 && nodes[i].height >= nodes[i - 1].height)))
      return fail(ErrorKind::kCorruptData,
                  "version node {} at offset {} has height {}, expected less from node to node", i, offset,
                  nodes[i].height);
  }
  return {};
}

}  // namespace

Statistics& Statistics::operator+=(const Statistics& other) {
  const auto add = [](uint64_t a, uint64_t b) { return checked_add(a, b).value_or(UINT64_MAX); };
  num_keys = add(num_keys, other.num_keys);
  num_tree_bytes = add(num_tree_bytes, other.num_tree_bytes);
  num_indirect_value_bytes = add(num_indirect_value_bytes, other.num_indirect_value_bytes);
  return *this;
}

Result<> check_location(const Location& location, size_t num_files, size_t offset) {
  if (location.file >= num_files)
    return fail(ErrorKind::kCorruptData, "data file {} named before offset {}, but the table has {}", location.file,
                offset, num_files);
  const auto end = checked_add(location.offset, location.length);
  if (!end || *end > static_cast<uint64_t>(INT64_MAX))
    return fail(ErrorKind::kCorruptData, "{} bytes from offset {}, named before offset {}, end beyond 2^63",
                location.length, location.offset, offset);
  return {};
}

void encode_locations(const std::vector<Location>& locations, ByteWriter& writer) {
  for (const Location& location : locations) writer.write_varint(location.file);
  for (const Location& location : locations) writer.write_varint(location.offset);
  for (const Location& location : locations) writer.write_varint(location.length);
}

Result<std::vector<Location>> decode_locations(ByteReader& reader, size_t count, size_t num_files,
                                               bool may_be_missing) {
  std::vector<Location> locations(count);
  MAXPORT_RETURN_IF_ERROR(read_column(locations, &Location::file, [&] { return reader.read_varint(32); }));
  MAXPORT_RETURN_IF_ERROR(read_column(locations, &Location::offset, [&] { return reader.read_varint(64); }));
  MAXPORT_RETURN_IF_ERROR(read_column(locations, &Location::length, [&] { return reader.read_varint(64); }));
  for (const Location& location : locations)
    if (!may_be_missing || !location.is_missing() || location.file >= num_files)
      MAXPORT_RETURN_IF_ERROR(check_location(location, num_files, reader.offset()));
  return locations;
}

void encode_versions(const std::vector<Version>& versions, ByteWriter& writer) {
  writer.write_varint(versions.size());
  for (const Version& version : versions) writer.write_varint(version.generation);
  for (const Version& version : versions) writer.write_u8(version.root_height);
  std::vector<Location> roots;
  for (const Version& version : versions) roots.push_back(version.root);
  encode_locations(roots, writer);
  for (const Version& version : versions) writer.write_varint(version.statistics.num_keys);
  for (const Version& version : versions) writer.write_varint(version.statistics.num_tree_bytes);
  for (const Version& version : versions) writer.write_varint(version.statistics.num_indirect_value_bytes);
  for (const Version& version : versions) writer.write_le64(version.commit_time);
}

Result<std::vector<Version>> decode_versions(ByteReader& reader, size_t num_files, uint8_t arity_log2) {
  const size_t offset = reader.offset();
  constexpr uint64_t kMinBytes = 8 + 8;  // eight columns of a byte or more, one of le64
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t count, read_count(reader, "versions", uint64_t{1} << arity_log2, kMinBytes));
  if (count == 0) return fail(ErrorKind::kCorruptData, "no version at offset {}, expected one at least", offset);
  std::vector<Version> versions(count);
  std::vector<Statistics> statistics(count);
  const auto varint = [&] { return reader.read_varint(64); };
  MAXPORT_RETURN_IF_ERROR(read_column(versions, &Version::generation, varint));
  MAXPORT_RETURN_IF_ERROR(read_column(versions, &Version::root_height, [&] { return reader.read_u8(); }));
  MAXPORT_RETURN_IF_ERROR(read_locations(reader, versions, &Version::root, num_files, true));
  MAXPORT_RETURN_IF_ERROR(read_column(statistics, &Statistics::num_keys, varint));
  MAXPORT_RETURN_IF_ERROR(read_column(statistics, &Statistics::num_tree_bytes, varint));
  MAXPORT_RETURN_IF_ERROR(read_column(statistics, &Statistics::num_indirect_value_bytes, varint));
  MAXPORT_RETURN_IF_ERROR(read_column(versions, &Version::commit_time, [&] { return reader.read_le64(); }));
  for (size_t i = 0; i < count; ++i) versions[i].statistics = statistics[i];
  MAXPORT_RETURN_IF_ERROR(check_generations(versions, arity_log2, offset));
  return versions;
}

void encode_version_nodes(const std::vector<VersionNodeReference>& nodes, bool with_heights, ByteWriter& writer) {
  writer.write_varint(nodes.size());
  for (const VersionNodeReference& node : nodes) writer.write_varint(node.generation);
  std::vector<Location> locations;
  for (const VersionNodeReference& node : nodes) locations.push_back(node.location);
  encode_locations(locations, writer);
  for (const VersionNodeReference& node : nodes) writer.write_varint(node.num_generations);
  for (const VersionNodeReference& node : nodes) writer.write_le64(node.commit_time);
  for (const VersionNodeReference& node : nodes)
    if (with_heights) writer.write_u8(node.height);
}

Result<std::vector<VersionNodeReference>> decode_version_nodes(ByteReader& reader, size_t num_files, size_t max_count,
                                                               bool with_heights, uint8_t height) {
  const size_t offset = reader.offset();
  constexpr uint64_t kMinBytes = 5 + 8;  // five columns of a byte or more, one of le64
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t count, read_count(reader, "version nodes", max_count, kMinBytes));
  std::vector<VersionNodeReference> nodes(count);
  for (VersionNodeReference& node : nodes) node.height = height;
  const auto varint = [&] { return reader.read_varint(64); };
  MAXPORT_RETURN_IF_ERROR(read_column(nodes, &VersionNodeReference::generation, varint));
  MAXPORT_RETURN_IF_ERROR(read_locations(reader, nodes, &VersionNodeReference::location, num_files, false));
  MAXPORT_RETURN_IF_ERROR(read_column(nodes, &VersionNodeReference::num_generations, varint));
  MAXPORT_RETURN_IF_ERROR(read_column(nodes, &VersionNodeReference::commit_time, [&] { return reader.read_le64(); }));
  if (with_heights)
    MAXPORT_RETURN_IF_ERROR(read_column(nodes, &VersionNodeReference::height, [&] { return reader.read_u8(); }));
  MAXPORT_RETURN_IF_ERROR(check_order(nodes, with_heights, offset));
  return nodes;
}

Result<uint8_t> decode_arity_log2(ByteReader& reader) {
  const size_t offset = reader.offset();
  MAXPORT_ASSIGN_OR_RETURN(const uint8_t arity_log2, reader.read_u8());
  if (arity_log2 < 1 || arity_log2 > kMaxVersionTreeArityLog2)
    return fail(ErrorKind::kCorruptData, "version_tree_arity_log2 at offset {} is {}, expected 1 to {}", offset,
                arity_log2, kMaxVersionTreeArityLog2);
  return arity_log2;
}

Bytes encode_version_node(const VersionNode& node) {
  ByteWriter writer;
  writer.write_u8(node.arity_log2);
  writer.write_u8(node.height);
  encode_data_file_table(node.files, writer);
  if (node.height == 0)
    encode_versions(node.versions, writer);
  else
    encode_version_nodes(node.references, false, writer);
  return writer.take();
}

Result<VersionNode> decode_version_node(ByteSpan body) {
  ByteReader reader(body, "the body");
  VersionNode node;
  MAXPORT_ASSIGN_OR_RETURN(node.arity_log2, decode_arity_log2(reader));
  MAXPORT_ASSIGN_OR_RETURN(node.height, reader.read_u8());
  MAXPORT_ASSIGN_OR_RETURN(node.files, decode_data_file_table(reader));
  if (node.height == 0) {
    MAXPORT_ASSIGN_OR_RETURN(node.versions, decode_versions(reader, node.files.size(), node.arity_log2));
  } else {
    MAXPORT_ASSIGN_OR_RETURN(node.references,
                             decode_version_nodes(reader, node.files.size(), size_t{1} << node.arity_log2, false,
                                                  static_cast<uint8_t>(node.height - 1)));
    if (node.references.empty()) return fail(ErrorKind::kCorruptData, "the node has no entries");
  }
  if (reader.remaining() != 0)
    return fail(ErrorKind::kCorruptData, "{} bytes follow the end of the body at offset {}", reader.remaining(),
                reader.offset());
  return node;
}

}  // namespace maxport::ocdbt
