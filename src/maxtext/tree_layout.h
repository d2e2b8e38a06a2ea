// Parameter trees as MaxText and its post-training tools write them, brought to one form.
//
//   Linen                params / {params, MoEBiasVar, ...} / decoder / layers / mlp / wi_0 / kernel
//   one params level     params / decoder / ...
//   NNX                  decoder / ... / kernel / value
//   NNX under base       base / decoder / ... / kernel / value
//
// The canonical name is the collection, '/', and the path joined by '.', with layers of an unscanned tree spelt as MaxText
// 0.2.5 asks for: "params/decoder.layers_0.mlp.wi_0.kernel". Pure functions of paths; nothing is read.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace maxport::maxtext {

/// Keys from the root to a leaf; list positions as decimal text.
using LeafPath = std::vector<std::string>;

enum class TreeLayout { kLinen, kSingleParams, kNnx, kNnxUnderBase };

/// "Linen", "Linen with one params level", "NNX", "NNX under base"
std::string_view tree_layout_name(TreeLayout layout);

struct CanonicalLeaf {
  size_t index;      ///< position in the list that was given
  std::string name;  ///< "params/decoder.layers_0.mlp.wi_0.kernel"
};

struct CanonicalTree {
  TreeLayout layout = TreeLayout::kLinen;
  /// Only Linen's own layout says which collection a leaf is in. Otherwise all names begin with "params/", also those of
  /// leaves that MaxText's model keeps elsewhere (the router bias of deepseek3): compare what follows the '/'.
  bool collections_known = true;
  std::vector<CanonicalLeaf> parameters;   ///< sorted by name
  std::vector<size_t> skipped;             ///< leaves that are no parameters, in the order given
  std::vector<std::string> skipped_roots;  ///< what those are below, each once: "opt_state", "step", "rngs"
  std::vector<std::string> notes;          ///< spellings that were changed, each kind once
  /// True: layers are stacked. False: they are numbered. Nothing when there are none.
  std::optional<bool> scan_layers;
};

/// kUnsupported, with the top of the tree in the message, when it is none of the layouts; kCorruptData when two leaves
/// get one name.
Result<CanonicalTree> canonical_tree(std::span<const LeafPath> leaves);

/// The path of a canonical name in a tree of Linen's layout, which is what MaxText's converter writes.
LeafPath linen_path(std::string_view canonical_name);

/// Checks the scan form of a tree against what else says it. `recorded` comes from the checkpoint's metadata, `asked` is
/// the argument if it was given. Errors are kInvalidArgument and say who says what; without any source the answer is
/// MaxText's default, true.
Result<bool> resolve_scan_layers(std::optional<bool> in_tree, std::optional<bool> recorded, std::optional<bool> asked);

}  // namespace maxport::maxtext
