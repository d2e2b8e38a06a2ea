// Parameter trees as MaxText and its post-training tools write them, brought to one form.
//
//   Linen                params / params / decoder / layers / mlp / wi_0 / kernel
//   one params level     params / decoder / ...
//   NNX                  decoder / ... / kernel / value
//   NNX under base       base / decoder / ... / kernel / value
//   collections          params / {params, MoEBiasVar, Tid2EidVar} / ...
//
// The canonical name is the collection, '/', and the path joined by '.', with unscanned layers spelt as MaxText 0.2.5
// asks for: "params/decoder.layers_0.mlp.wi_0.kernel". Pure functions of paths; nothing is read.
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

std::string_view tree_layout_name(TreeLayout layout);

struct CanonicalLeaf {
  size_t index;      ///< position in the list that was given
  std::string name;  ///< "params/decoder.layers_0.mlp.wi_0.kernel"
};

struct CanonicalTree {
  TreeLayout layout = TreeLayout::kLinen;
  std::vector<CanonicalLeaf> parameters;  ///< sorted by name
  std::vector<size_t> skipped;            ///< leaves that are no parameters (opt_state, step, random state, ...)
  std::vector<std::string> skipped_roots; ///< what those are called, each once
  std::vector<std::string> respelt;       ///< notes such as "layers/0 read as layers_0", each kind once
  /// True: stacked layers. False: numbered layers. Nothing when no layer tells (or none is there).
  std::optional<bool> scan_layers;
};

/// kUnsupported prints the top of the tree when it is none of the layouts; kCorruptData when two leaves get one name.
Result<CanonicalTree> canonical_tree(std::span<const LeafPath> leaves);

/// The spelling that MaxText 0.2.5 asks for in the given layout: the path of a canonical name in a Linen tree.
LeafPath linen_path(std::string_view canonical_name);

}  // namespace maxport::maxtext
