// Paths in a checkpoint's tree, the names that Orbax derives from them, and what makes a set of paths a tree.
//
// formats.md 3.3. A tree is kept flat, as the list of its leaves' paths. Empty containers and None are leaves too.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace maxport::orbax {

/// One step down the tree.
struct KeyPart {
  std::string key;
  bool sequence = false;  ///< `key` is the decimal index in a list; otherwise it is the key in a dictionary

  auto operator<=>(const KeyPart&) const = default;
};

using TreePath = std::vector<KeyPart>;

/// A path of dictionary keys only.
TreePath dictionary_path(std::span<const std::string> keys);

/// Keys joined with ".": the name of the leaf's array in the store.
std::string parameter_name(std::span<const KeyPart> path);

/// The path as stock's `_METADATA` spells it: the text of a Python tuple, "('params', 'step')".
std::string tuple_text(std::span<const KeyPart> path);

/// A Python string literal as `repr` writes it. Of the characters that Python calls unprintable only the usual ones
/// (controls, format characters, odd spaces, private use) are escaped; readers use the text as a unique name only.
std::string python_quoted(std::string_view text);

/// A path and whether anything is stored under its parameter name.
struct TreeEntry {
  std::span<const KeyPart> path;
  bool stored = true;
};

/// Checks that the paths form a tree: no path twice or below another leaf, no level with both indices and keys, list
/// indices complete from 0 without leading zeros, and no two stored leaves with one parameter name (`a.b` and `a`, `b`).
/// Keys must be valid UTF-8 without NUL; at most 256 levels. `kind` is the kind of error that a violation is.
Result<> check_tree(std::span<const TreeEntry> entries, ErrorKind kind);

}  // namespace maxport::orbax
