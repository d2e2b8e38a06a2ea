#include "orbax/tree.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "base/utf8.h"

namespace maxport::orbax {
namespace {

constexpr size_t kMaxDepth = 256;

char32_t code_point(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead;
  char32_t value = lead & (0xFFu >> (sequence.size() + 1));
  for (char c : sequence.substr(1)) value = value << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return value;
}

bool is_printable(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return first <= c && c <= last; };
  return c >= 0x20 && !within(0x7F, 0xA0) && c != 0xAD && !within(0x2000, 0x200F) && !within(0x2028, 0x202F) &&
         !within(0x205F, 0x206F) && c != 0x3000 && !within(0xE000, 0xF8FF) && c != 0xFEFF && c < 0xE0000;
}

std::string escaped(char32_t c) {
  const auto value = static_cast<uint32_t>(c);
  if (value <= 0xFF) return fmt::format("\\x{:02x}", value);
  return value <= 0xFFFF ? fmt::format("\\u{:04x}", value) : fmt::format("\\U{:08x}", value);
}

std::string shown(std::span<const KeyPart> path) { return printable(tuple_text(path)); }

bool is_prefix(std::span<const KeyPart> shorter, std::span<const KeyPart> longer) {
  return shorter.size() <= longer.size() && std::ranges::equal(shorter, longer.first(shorter.size()));
}

Result<> check_keys(std::span<const KeyPart> path, ErrorKind kind) {
  if (path.size() > kMaxDepth) return fail(kind, "a leaf {} levels deep; at most {} are possible", path.size(), kMaxDepth);
  for (const KeyPart& part : path) {
    if (!is_valid_utf8(part.key) || part.key.contains('\0'))
      return fail(kind, "leaf {}: a key must be valid UTF-8 without NUL bytes", shown(path));
    if (!part.sequence) continue;
    const bool digits = !part.key.empty() && part.key.size() <= 9 &&
                        part.key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || (part.key.size() > 1 && part.key[0] == '0'))
      return fail(kind, "leaf {}: \"{}\" is not a list index", shown(path), printable(part.key));
  }
  return {};
}

/// What is known of one inner node.
struct Node {
  bool sequence = false;
  std::vector<uint32_t> indices;  // of a list, as they come
};

uint32_t index_of(const KeyPart& part) {
  uint32_t value = 0;
  std::from_chars(part.key.data(), part.key.data() + part.key.size(), value);
  return value;
}

/// Walks the sorted paths with the chain of open nodes; a node is complete when a path leaves it.
class LevelChecker {
 public:
  explicit LevelChecker(ErrorKind kind) : kind_(kind) {}

  Result<> add(std::span<const KeyPart> path) {
    size_t common = 0;
    while (common < open_.size() && common < path.size() && common < last_.size() && last_[common] == path[common])
      ++common;
    MAXPORT_RETURN_IF_ERROR(close_below(common));
    for (size_t level = common; level < path.size(); ++level) {
      if (level == open_.size()) open_.push_back({path[level].sequence, {}});
      Node& node = open_[level];
      if (node.sequence != path[level].sequence)
        return fail(kind_, "leaf {}: its parent holds both list indices and dictionary keys", shown(path));
      if (node.sequence) node.indices.push_back(index_of(path[level]));
    }
    last_ = path;
    return {};
  }

  Result<> finish() { return close_below(0, true); }

 private:
  /// Nodes deeper than `level` are left; the node at `level` itself gets a new child.
  Result<> close_below(size_t level, bool all = false) {
    while (open_.size() > level + (all ? 0 : 1)) {
      Node& node = open_.back();
      std::ranges::sort(node.indices);
      for (size_t i = 0; i < node.indices.size(); ++i)
        if (node.indices[i] != i)
          return fail(kind_, "list {}: index {} is missing", shown(last_.first(open_.size() - 1)), i);
      open_.pop_back();
    }
    return {};
  }

  ErrorKind kind_;
  std::vector<Node> open_;
  std::span<const KeyPart> last_;
};

Result<> check_names(std::span<const TreeEntry> entries, ErrorKind kind) {
  std::unordered_map<std::string, std::span<const KeyPart>> names;
  for (const TreeEntry& entry : entries) {
    if (!entry.stored) continue;
    const auto [at, fresh] = names.emplace(parameter_name(entry.path), entry.path);
    if (!fresh)
      return fail(kind, "leaves {} and {} would both be stored as \"{}\"; rename one of them", shown(at->second),
                  shown(entry.path), printable(at->first));
  }
  return {};
}

}  // namespace

TreePath dictionary_path(std::span<const std::string> keys) {
  TreePath path;
  for (const std::string& key : keys) path.push_back({key, false});
  return path;
}

std::string parameter_name(std::span<const KeyPart> path) {
  std::string name;
  for (size_t i = 0; i < path.size(); ++i) {
    if (i > 0) name += '.';
    name += path[i].key;
  }
  return name;
}

std::string tuple_text(std::span<const KeyPart> path) {
  std::string text = "(";
  for (size_t i = 0; i < path.size(); ++i) {
    if (i > 0) text += ", ";
    text += python_quoted(path[i].key);
  }
  return text + (path.size() == 1 ? ",)" : ")");
}

std::string python_quoted(std::string_view text) {
  const char quote = text.contains('\'') && !text.contains('"') ? '"' : '\'';
  std::string out(1, quote);
  while (!text.empty()) {
    const size_t length = std::max<size_t>(1, utf8_sequence_length(text));
    const std::string_view sequence = text.substr(0, length);
    const char32_t c = code_point(sequence);
    if (c == U'\n')
      out += "\\n";
    else if (c == U'\r')
      out += "\\r";
    else if (c == U'\t')
      out += "\\t";
    else if (c == U'\\' || c == static_cast<unsigned char>(quote))
      out += {'\\', sequence[0]};
    else if (is_printable(c) && utf8_sequence_length(text) > 0)
      out += sequence;
    else
      out += escaped(c);
    text.remove_prefix(length);
  }
  return out + quote;
}

Result<> check_tree(std::span<const TreeEntry> entries, ErrorKind kind) {
  std::vector<std::span<const KeyPart>> paths;
  for (const TreeEntry& entry : entries) {
    MAXPORT_RETURN_IF_ERROR(check_keys(entry.path, kind));
    paths.push_back(entry.path);
  }
  std::ranges::sort(paths, [](auto a, auto b) { return std::ranges::lexicographical_compare(a, b); });
  LevelChecker levels(kind);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (i > 0 && is_prefix(paths[i - 1], paths[i])) {
      if (paths[i - 1].size() == paths[i].size()) return fail(kind, "leaf {} occurs twice", shown(paths[i]));
      return fail(kind, "leaf {} lies below another leaf, {}", shown(paths[i]), shown(paths[i - 1]));
    }
    MAXPORT_RETURN_IF_ERROR(levels.add(paths[i]));
  }
  MAXPORT_RETURN_IF_ERROR(levels.finish());
  return check_names(entries, kind);
}

}  // namespace maxport::orbax
