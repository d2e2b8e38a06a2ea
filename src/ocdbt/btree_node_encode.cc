#include <algorithm>

#include "ocdbt/btree_node.h"

namespace maxport::ocdbt {
namespace {

/// What each key repeats of the one before it, counted from the front of the whole key.
template <class Entry>
std::vector<uint16_t> shared_with_previous(std::span<const Entry> entries, size_t dropped_prefix) {
  std::vector<uint16_t> shared(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const size_t length = i == 0 ? dropped_prefix : common_prefix_length(entries[i - 1].key, entries[i].key);
    shared[i] = static_cast<uint16_t>(length);
  }
  return shared;
}

template <class Entry>
void encode_keys(std::span<const Entry> entries, size_t dropped_prefix, ByteWriter& writer) {
  const std::vector<uint16_t> shared = shared_with_previous(entries, dropped_prefix);
  for (size_t i = 1; i < entries.size(); ++i) writer.write_varint(shared[i] - dropped_prefix);
  for (size_t i = 0; i < entries.size(); ++i) writer.write_varint(entries[i].key.size() - shared[i]);
  if constexpr (std::is_same_v<Entry, InteriorEntry>)
    for (const Entry& entry : entries) writer.write_varint(entry.subtree_prefix_length - dropped_prefix);
  for (size_t i = 0; i < entries.size(); ++i) writer.write_text(entries[i].key.substr(shared[i]));
}

void encode_head(uint8_t height, const std::vector<DataFile>& files, size_t count, ByteWriter& writer) {
  MAXPORT_CHECK(count >= 1 && count <= kMaxNodeEntries);
  writer.write_u8(height);
  encode_data_file_table(files, writer);
  writer.write_varint(count);
}

}  // namespace

size_t common_prefix_length(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

Bytes encode_leaf_node(std::span<const LeafEntry> entries, const std::vector<DataFile>& files, size_t dropped_prefix) {
  ByteWriter writer;
  encode_head(0, files, entries.size(), writer);
  encode_keys(entries, dropped_prefix, writer);
  for (const LeafEntry& entry : entries) writer.write_varint(entry.value.length);
  for (const LeafEntry& entry : entries) writer.write_u8(entry.is_inline() ? 0 : 1);
  for (const LeafEntry& entry : entries)
    if (!entry.is_inline()) writer.write_varint(entry.value.file);
  for (const LeafEntry& entry : entries)
    if (!entry.is_inline()) writer.write_varint(entry.value.offset);
  for (const LeafEntry& entry : entries)
    if (entry.is_inline()) writer.write_bytes(entry.inline_bytes());
  return writer.take();
}

Bytes encode_interior_node(uint8_t height, std::span<const InteriorEntry> entries, const std::vector<DataFile>& files,
                           size_t dropped_prefix) {
  MAXPORT_CHECK(height > 0);
  ByteWriter writer;
  encode_head(height, files, entries.size(), writer);
  encode_keys(entries, dropped_prefix, writer);
  std::vector<Location> children;
  children.reserve(entries.size());
  for (const InteriorEntry& entry : entries) children.push_back(entry.child);
  encode_locations(children, writer);
  for (const InteriorEntry& entry : entries) writer.write_varint(entry.statistics.num_keys);
  for (const InteriorEntry& entry : entries) writer.write_varint(entry.statistics.num_tree_bytes);
  for (const InteriorEntry& entry : entries) writer.write_varint(entry.statistics.num_indirect_value_bytes);
  return writer.take();
}

}  // namespace maxport::ocdbt
