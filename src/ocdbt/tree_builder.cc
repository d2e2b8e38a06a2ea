#include "ocdbt/tree_builder.h"

#include <algorithm>
#include <numeric>

#include "ocdbt/frame.h"

namespace maxport::ocdbt {
namespace {

// What stock counts for an entry besides key, inline value and the paths of data files.
constexpr uint64_t kLeafEntryBytes = 16;
constexpr uint64_t kOutsideValueBytes = 16;
constexpr uint64_t kInteriorEntryBytes = 56;

uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

uint64_t path_bytes(const DataFile& file) { return file.base_path.size() + file.relative_path.size(); }

}  // namespace

std::vector<size_t> cut_level(size_t count, const std::function<uint64_t(size_t)>& size_of, const CutLimits& limits) {
  uint64_t left = 0;
  for (size_t i = 0; i < count; ++i) left += size_of(i);
  std::vector<size_t> ends;
  for (size_t start = 0; start < count;) {
    // The rest is shared evenly among as few nodes as can hold it.
    const uint64_t by_bytes = divide_up(left, std::max<uint64_t>(limits.max_bytes, 1));
    const uint64_t most = divide_up(count - start, limits.min_entries);
    const uint64_t nodes =
        std::max({std::min(by_bytes, most), divide_up(count - start, limits.max_entries), uint64_t{1}});
    const uint64_t target = std::max<uint64_t>(divide_up(left, nodes), 1);
    uint64_t size = 0;
    size_t end = start;
    while (end < count && end - start < limits.max_entries) {
      const uint64_t next = size_of(end);
      const bool enough = end - start >= limits.min_entries && (size >= target || size + next > limits.max_bytes);
      if (enough) break;
      size += next;
      ++end;
    }
    ends.push_back(end);
    left -= size;
    start = end;
  }
  return ends;
}

TreeBuilder::TreeBuilder(std::vector<DataFile> value_files, DataFile node_file, uint64_t max_decoded_node_bytes,
                         std::optional<int> zstd_level, Store store)
    : value_files_(std::move(value_files)),
      ranks_(value_files_.size()),
      node_file_(std::move(node_file)),
      max_decoded_node_bytes_(max_decoded_node_bytes == 0 ? UINT64_MAX : max_decoded_node_bytes),
      zstd_level_(zstd_level),
      store_(std::move(store)) {
  std::vector<uint32_t> order(value_files_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](uint32_t file) -> const DataFile& { return value_files_[file]; });
  for (uint32_t rank = 0; rank < order.size(); ++rank) ranks_[order[rank]] = rank;
}

Result<InteriorEntry> TreeBuilder::store_node(ByteSpan body, std::string_view first_key, size_t dropped_prefix,
                                              Statistics statistics) {
  MAXPORT_ASSIGN_OR_RETURN(const Bytes node, encode_frame(kBtreeNodeMagic, body, zstd_level_));
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t offset, store_(node));
  statistics.num_tree_bytes += node.size();
  return InteriorEntry{.key = first_key,
                       .subtree_prefix_length = static_cast<uint32_t>(dropped_prefix),
                       .child = {.file = 0, .offset = offset, .length = node.size()},
                       .statistics = statistics};
}

Result<InteriorEntry> TreeBuilder::store_leaf(std::vector<LeafEntry> entries, bool is_root) {
  // Only files that this node names, in stock's order.
  std::vector<uint32_t> used;
  Statistics statistics{.num_keys = entries.size(), .num_tree_bytes = 0, .num_indirect_value_bytes = 0};
  for (const LeafEntry& entry : entries) {
    if (entry.is_inline()) continue;
    if (used.empty() || used.back() != entry.value.file) used.push_back(entry.value.file);
    statistics.num_indirect_value_bytes += entry.value.length;
  }
  const auto rank = [&](uint32_t file) { return ranks_[file]; };
  std::ranges::sort(used, {}, rank);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  std::vector<DataFile> files;
  for (const uint32_t file : used) files.push_back(value_files_[file]);
  for (LeafEntry& entry : entries)
    if (!entry.is_inline())
      entry.value.file =
          static_cast<uint32_t>(std::ranges::lower_bound(used, rank(entry.value.file), {}, rank) - used.begin());
  const std::string_view first = entries.front().key;
  const size_t dropped = is_root ? 0 : common_prefix_length(first, entries.back().key);
  const Bytes body = encode_leaf_node(entries, files, dropped);
  entries = {};
  return store_node(body, first, dropped, statistics);
}

Result<InteriorEntry> TreeBuilder::store_interior(uint8_t height, std::span<const InteriorEntry> entries,
                                                  bool is_root) {
  Statistics statistics;
  size_t dropped = is_root ? 0 : common_prefix_length(entries.front().key, entries.back().key);
  for (const InteriorEntry& entry : entries) {
    statistics += entry.statistics;
    dropped = std::min<size_t>(dropped, entry.subtree_prefix_length);
  }
  const Bytes body = encode_interior_node(height, entries, {node_file_}, dropped);
  return store_node(body, entries.front().key, dropped, statistics);
}

Result<BuiltTree> TreeBuilder::build(size_t count, const std::function<LeafEntry(size_t)>& entry_at) {
  if (count == 0) return BuiltTree();
  std::vector<InteriorEntry> level;
  const auto leaf_size = [&](size_t i) {
    const LeafEntry entry = entry_at(i);
    return kLeafEntryBytes + entry.key.size() +
           (entry.is_inline() ? entry.value.length : kOutsideValueBytes + path_bytes(value_files_[entry.value.file]));
  };
  size_t start = 0;
  for (const size_t end : cut_level(count, leaf_size, {.max_bytes = max_decoded_node_bytes_})) {
    std::vector<LeafEntry> entries;
    entries.reserve(end - start);
    for (; start < end; ++start) entries.push_back(entry_at(start));
    MAXPORT_ASSIGN_OR_RETURN(const InteriorEntry child, store_leaf(std::move(entries), end == count && level.empty()));
    level.push_back(child);
  }
  uint8_t height = 0;
  while (level.size() > 1) {
    ++height;
    const auto interior_size = [&](size_t i) {
      return kInteriorEntryBytes + level[i].key.size() + path_bytes(node_file_);
    };
    // Two children at least, so that every level is smaller than the one below it.
    const CutLimits limits{.max_bytes = max_decoded_node_bytes_, .min_entries = 2};
    const std::vector<size_t> ends = cut_level(level.size(), interior_size, limits);
    std::vector<InteriorEntry> above;
    start = 0;
    for (const size_t end : ends) {
      const auto entries = std::span(level).subspan(start, end - start);
      MAXPORT_ASSIGN_OR_RETURN(const InteriorEntry node, store_interior(height, entries, ends.size() == 1));
      above.push_back(node);
      start = end;
    }
    level = std::move(above);
  }
  return BuiltTree{.height = height, .root = level.front().child, .statistics = level.front().statistics};
}

}  // namespace maxport::ocdbt
