#include "ocdbt/btree_node.h"

#include <algorithm>

namespace maxport::ocdbt {
namespace {

/// Keys may repeat each other's beginnings, so they can be far larger than the bytes that hold them.
constexpr uint64_t kMaxKeyColumnBytes = uint64_t{256} << 20;

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

class NodeDecoder {
 public:
  explicit NodeDecoder(ByteSpan body) : reader_(body, "the body") {}

  Result<BtreeNode> decode() {
    MAXPORT_ASSIGN_OR_RETURN(node_.height_, reader_.read_u8());
    MAXPORT_ASSIGN_OR_RETURN(node_.files_, decode_data_file_table(reader_));
    MAXPORT_RETURN_IF_ERROR(decode_count());
    if (node_.height_ == 0) {
      node_.leaves_.resize(count_);
      MAXPORT_RETURN_IF_ERROR(decode_keys(node_.leaves_));
      MAXPORT_RETURN_IF_ERROR(decode_values());
    } else {
      node_.children_.resize(count_);
      MAXPORT_RETURN_IF_ERROR(decode_keys(node_.children_));
      MAXPORT_RETURN_IF_ERROR(decode_children());
    }
    if (reader_.remaining() != 0)
      return fail(ErrorKind::kCorruptData, "{} bytes follow the end of the body at offset {}", reader_.remaining(),
                  reader_.offset());
    return std::move(node_);
  }

 private:
  Result<> decode_count() {
    const size_t offset = reader_.offset();
    MAXPORT_ASSIGN_OR_RETURN(count_, reader_.read_varint(32));
    if (count_ < 1 || count_ > kMaxNodeEntries)
      return fail(ErrorKind::kCorruptData, "{} entries stated at offset {}, expected 1 to {}", count_, offset,
                  kMaxNodeEntries);
    if (count_ > reader_.remaining())
      return fail(ErrorKind::kCorruptData, "{} entries stated at offset {}, more than the {} bytes left can hold",
                  count_, offset, reader_.remaining());
    return {};
  }

  Result<std::vector<uint16_t>> read_lengths(size_t count) {
    std::vector<uint16_t> lengths(count);
    for (uint16_t& length : lengths) {
      MAXPORT_ASSIGN_OR_RETURN(const uint64_t value, reader_.read_varint(16));
      length = static_cast<uint16_t>(value);
    }
    return lengths;
  }

  template <class Read>
  Result<> read_column(size_t count, Read store) {
    for (size_t i = 0; i < count; ++i) {
      MAXPORT_ASSIGN_OR_RETURN(const uint64_t value, reader_.read_varint(64));
      store(i, value);
    }
    return {};
  }

  template <class Entry>
  Result<> decode_keys(std::vector<Entry>& entries) {
    MAXPORT_ASSIGN_OR_RETURN(std::vector<uint16_t> shared, read_lengths(count_ - 1));
    shared.insert(shared.begin(), 0);
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<uint16_t> suffixes, read_lengths(count_));
    if constexpr (std::is_same_v<Entry, InteriorEntry>) {
      MAXPORT_ASSIGN_OR_RETURN(const std::vector<uint16_t> prefixes, read_lengths(count_));
      for (size_t i = 0; i < count_; ++i) entries[i].subtree_prefix_length = prefixes[i];
    }
    MAXPORT_RETURN_IF_ERROR(reserve_keys(shared, suffixes));
    for (size_t i = 0; i < count_; ++i) {
      const std::string_view previous = i == 0 ? std::string_view() : entries[i - 1].key;
      MAXPORT_ASSIGN_OR_RETURN(entries[i].key, decode_key(i, previous, shared[i], suffixes[i]));
      if constexpr (std::is_same_v<Entry, InteriorEntry>)
        if (entries[i].subtree_prefix_length > entries[i].key.size())
          return fail(ErrorKind::kCorruptData, "entry {} before offset {} drops {} bytes of a key of {}", i,
                      reader_.offset(), entries[i].subtree_prefix_length, entries[i].key.size());
    }
    return {};
  }

  /// Makes room for all keys at once, so that views of them stay valid.
  Result<> reserve_keys(const std::vector<uint16_t>& shared, const std::vector<uint16_t>& suffixes) {
    uint64_t total = 0;
    for (size_t i = 0; i < count_; ++i) total += uint64_t{shared[i]} + suffixes[i];
    if (total > kMaxKeyColumnBytes)
      return fail(ErrorKind::kCorruptData, "the keys before offset {} have {} bytes, at most {} are allowed",
                  reader_.offset(), total, kMaxKeyColumnBytes);
    node_.keys_.reserve(total);
    return {};
  }

  Result<std::string_view> decode_key(size_t index, std::string_view previous, size_t shared, size_t suffix_size) {
    const size_t offset = reader_.offset();
    MAXPORT_ASSIGN_OR_RETURN(const ByteSpan bytes, reader_.read_bytes(suffix_size));
    const std::string_view suffix = as_text(bytes);
    if (shared > previous.size())
      return fail(ErrorKind::kCorruptData, "key {} at offset {} repeats {} bytes of a key of {}", index, offset, shared,
                  previous.size());
    if (shared + suffix.size() > kMaxKeyBytes)
      return fail(ErrorKind::kCorruptData, "key {} at offset {} has {} bytes, at most {} are allowed", index, offset,
                  shared + suffix.size(), kMaxKeyBytes);
    if (index > 0 && suffix <= previous.substr(shared))
      return fail(ErrorKind::kCorruptData, "key {} at offset {} is not larger than the one before it", index, offset);
    const size_t start = node_.keys_.size();
    node_.keys_.insert(node_.keys_.end(), previous.begin(), previous.begin() + static_cast<ptrdiff_t>(shared));
    node_.keys_.insert(node_.keys_.end(), suffix.begin(), suffix.end());
    return std::string_view(node_.keys_.data() + start, shared + suffix.size());
  }

  Result<> decode_values() {
    std::vector<LeafEntry>& entries = node_.leaves_;
    MAXPORT_RETURN_IF_ERROR(read_column(count_, [&](size_t i, uint64_t value) { entries[i].value.length = value; }));
    const size_t kinds_offset = reader_.offset();
    MAXPORT_ASSIGN_OR_RETURN(const ByteSpan kinds, reader_.read_bytes(count_));
    std::vector<uint32_t> outside;  // indices of the values out of line
    uint64_t inline_bytes = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      const auto kind = std::to_integer<uint8_t>(kinds[i]);
      if (kind > 1 || (kind == 0 && entries[i].value.length > kMaxInlineBytes))
        return fail(
            ErrorKind::kCorruptData,
            "value {} of {} bytes has kind {} at offset {}, expected 1 (out of line) or, up to {} bytes, 0 (inline)", i,
            entries[i].value.length, kind, kinds_offset + i, kMaxInlineBytes);
      if (kind == 1) outside.push_back(i);
      if (kind == 0) inline_bytes += entries[i].value.length;
    }
    MAXPORT_RETURN_IF_ERROR(decode_outside_values(outside));
    return decode_inline_values(kinds, inline_bytes);
  }

  Result<> decode_outside_values(const std::vector<uint32_t>& outside) {
    std::vector<LeafEntry>& entries = node_.leaves_;
    for (const uint32_t i : outside) {
      MAXPORT_ASSIGN_OR_RETURN(const uint64_t file, reader_.read_varint(32));
      entries[i].value.file = static_cast<uint32_t>(file);
    }
    MAXPORT_RETURN_IF_ERROR(
        read_column(outside.size(), [&](size_t i, uint64_t value) { entries[outside[i]].value.offset = value; }));
    for (const uint32_t i : outside)
      MAXPORT_RETURN_IF_ERROR(check_location(entries[i].value, node_.files_.size(), reader_.offset()));
    return {};
  }

  Result<> decode_inline_values(ByteSpan kinds, uint64_t inline_bytes) {
    MAXPORT_ASSIGN_OR_RETURN(const ByteSpan values, reader_.read_bytes(inline_bytes));
    node_.inline_values_.reserve(values.size() + 1);
    node_.inline_values_.assign(values.begin(), values.end());
    // One byte more than needed, so that an empty value has an address too.
    node_.inline_values_.push_back({});
    const std::byte* next = node_.inline_values_.data();
    for (size_t i = 0; i < count_; ++i) {
      if (kinds[i] != std::byte{0}) continue;
      node_.leaves_[i].inline_value = next;
      next += node_.leaves_[i].value.length;
    }
    return {};
  }

  Result<> decode_children() {
    std::vector<InteriorEntry>& entries = node_.children_;
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<Location> children,
                             decode_locations(reader_, count_, node_.files_.size(), false));
    for (size_t i = 0; i < count_; ++i) entries[i].child = children[i];
    MAXPORT_RETURN_IF_ERROR(
        read_column(count_, [&](size_t i, uint64_t value) { entries[i].statistics.num_keys = value; }));
    MAXPORT_RETURN_IF_ERROR(
        read_column(count_, [&](size_t i, uint64_t value) { entries[i].statistics.num_tree_bytes = value; }));
    return read_column(count_,
                       [&](size_t i, uint64_t value) { entries[i].statistics.num_indirect_value_bytes = value; });
  }

  ByteReader reader_;
  BtreeNode node_;
  size_t count_ = 0;
};

uint64_t BtreeNode::memory_bytes() const {
  uint64_t bytes = sizeof *this + keys_.capacity() + inline_values_.capacity() +
                   leaves_.capacity() * sizeof(LeafEntry) + children_.capacity() * sizeof(InteriorEntry);
  for (const DataFile& file : files_) bytes += sizeof file + file.base_path.size() + file.relative_path.size();
  return bytes;
}

Result<BtreeNode> decode_btree_node(ByteSpan body) { return NodeDecoder(body).decode(); }

}  // namespace maxport::ocdbt
