#include "maxtext/tree_layout.h"

#include <algorithm>
#include <map>
#include <set>

namespace maxport::maxtext {
namespace {

// Roots and parts of an NNX tree that hold no weights of the model.
constexpr std::string_view kOtherRoots[] = {"opt_state", "optimizer", "step", "rngs", "rng", "metrics", "dropout"};

constexpr std::string_view kModelRoots[] = {"decoder", "token_embedder", "vision_encoder", "audio_encoder", "mtp_block"};

// Stacked layers of a scanned decoder; the same names with a number are single layers.
constexpr std::string_view kStackedLayers[] = {"layers", "dense_layers", "moe_layers", "scanned_blocks",
                                               "layers_remainder"};

bool is_one_of(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// What stands before a trailing "_<number>", or nothing.
std::optional<std::string_view> numbered(std::string_view segment) {
  const size_t bar = segment.rfind('_');
  if (bar == std::string_view::npos || !is_number(segment.substr(bar + 1))) return std::nullopt;
  return segment.substr(0, bar);
}

bool is_random_state(const LeafPath& path) {
  return std::ranges::any_of(path, [](std::string_view segment) {
    return segment == "rngs" || segment == "to_nnx__rngs" || segment.ends_with("_rngs");
  });
}

bool has_root(std::span<const LeafPath> leaves, std::string_view first, std::string_view second = {}) {
  return std::ranges::any_of(leaves, [&](const LeafPath& path) {
    return !path.empty() && path[0] == first && (second.empty() || (path.size() > 1 && path[1] == second));
  });
}

bool has_model_root(std::span<const LeafPath> leaves, std::string_view below = {}) {
  const size_t at = below.empty() ? 0 : 1;
  return std::ranges::any_of(leaves, [&](const LeafPath& path) {
    return path.size() > at && (below.empty() || path[0] == below) && is_one_of(path[at], kModelRoots);
  });
}

std::optional<TreeLayout> detect(std::span<const LeafPath> leaves) {
  if (has_root(leaves, "params", "params")) return TreeLayout::kLinen;
  if (has_model_root(leaves, "params")) return TreeLayout::kSingleParams;
  if (has_root(leaves, "params")) return std::nullopt;
  if (has_model_root(leaves, "base")) return TreeLayout::kNnxUnderBase;
  if (has_model_root(leaves)) return TreeLayout::kNnx;
  return std::nullopt;
}

/// The first two levels, for a message about a tree that nobody here knows.
std::string top_of(std::span<const LeafPath> leaves) {
  constexpr size_t kMostShown = 12;
  std::map<std::string, std::set<std::string>> roots;
  for (const LeafPath& path : leaves) {
    if (path.empty()) continue;
    auto& below = roots[path[0]];
    if (path.size() > 1 && below.size() < kMostShown) below.insert(path[1]);
  }
  std::string text;
  size_t shown = 0;
  for (const auto& [root, below] : roots) {
    if (shown++ == kMostShown) return text + ", ...";
    text += (text.empty() ? "" : ", ") + printable(root);
    if (below.empty()) continue;
    std::string inner;
    for (const std::string& name : below) inner += (inner.empty() ? "" : ", ") + printable(name);
    text += " {" + inner + "}";
  }
  return text.empty() ? "nothing" : text;
}

class Canonicalizer {
 public:
  Canonicalizer(std::span<const LeafPath> leaves, TreeLayout layout) : leaves_(leaves) {
    tree_.layout = layout;
    tree_.collections_known = layout == TreeLayout::kLinen;
  }

  Result<CanonicalTree> run() {
    for (size_t i = 0; i < leaves_.size(); ++i) add(i);
    std::ranges::sort(tree_.parameters, {}, &CanonicalLeaf::name);
    const auto twin = std::ranges::adjacent_find(tree_.parameters, {}, &CanonicalLeaf::name);
    if (twin != tree_.parameters.end())
      return fail(ErrorKind::kCorruptData, "the checkpoint holds {} twice, as {} and as {}", printable(twin->name),
                  shown(leaves_[twin->index]), shown(leaves_[std::next(twin)->index]));
    tree_.scan_layers = scan_form();
    return std::move(tree_);
  }

 private:
  static std::string shown(const LeafPath& path) {
    std::string text;
    for (const std::string& segment : path) text += (text.empty() ? "" : "/") + printable(segment);
    return text;
  }

  void skip(size_t index, const std::string& what) {
    tree_.skipped.push_back(index);
    if (std::ranges::find(tree_.skipped_roots, what) == tree_.skipped_roots.end()) tree_.skipped_roots.push_back(what);
  }

  void note(std::string text) {
    if (std::ranges::find(tree_.notes, text) == tree_.notes.end()) tree_.notes.push_back(std::move(text));
  }

  void add(size_t index) {
    const LeafPath& path = leaves_[index];
    if (path.empty()) return skip(index, "(root)");
    size_t first = 0;
    std::string collection = "params";
    switch (tree_.layout) {
      case TreeLayout::kLinen:
        if (path[0] != "params" || path.size() < 2) return skip(index, path[0]);
        collection = path[1];
        first = 2;
        break;
      case TreeLayout::kSingleParams:
        if (path[0] != "params") return skip(index, path[0]);
        first = 1;
        break;
      case TreeLayout::kNnxUnderBase:
        if (path[0] != "base") return skip(index, path[0]);
        first = 1;
        break;
      case TreeLayout::kNnx:
        if (is_one_of(path[0], kOtherRoots)) return skip(index, path[0]);
        break;
    }
    if (is_random_state(path)) return skip(index, "rngs");
    tree_.parameters.push_back({index, collection + "/" + joined(std::span(path).subspan(first))});
  }

  std::string joined(std::span<const std::string> segments) {
    std::vector<std::string> parts;
    for (const std::string& segment : segments) {
      if (is_number(segment) && !parts.empty()) {
        note(fmt::format("{0}/N is read as {0}_N", printable(parts.back())));
        parts.back() += "_" + segment;
      } else {
        parts.push_back(segment);
      }
    }
    // NNX keeps each array in a variable, whose content is its "value".
    if (parts.size() > 1 && parts.back() == "value") parts.pop_back();
    std::string name;
    for (std::string& part : parts) name += (name.empty() ? "" : ".") + respelt(std::move(part));
    return name;
  }

  std::string respelt(std::string part) {
    for (std::string_view singular : {"dense_layer", "moe_layer"}) {
      if (numbered(part) != singular) continue;
      note(fmt::format("{0}_N is read as {0}s_N", singular));
      part.insert(singular.size(), "s");
    }
    return part;
  }

  /// A scanned tree may hold numbered layers too (the first ones of deepseek4), an unscanned one no stacked ones.
  std::optional<bool> scan_form() const {
    std::optional<bool> scanned;
    for (const CanonicalLeaf& leaf : tree_.parameters) {
      constexpr std::string_view kDecoder = "params/decoder.";
      if (!leaf.name.starts_with(kDecoder)) continue;
      const std::string_view rest = std::string_view(leaf.name).substr(kDecoder.size());
      const std::string_view segment = rest.substr(0, rest.find('.'));
      if (is_one_of(segment, kStackedLayers)) return true;
      const auto stem = numbered(segment);
      if (stem && is_one_of(*stem, kStackedLayers)) scanned = false;
    }
    return scanned;
  }

  std::span<const LeafPath> leaves_;
  CanonicalTree tree_;
};

std::string_view truth(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string_view tree_layout_name(TreeLayout layout) {
  switch (layout) {
    case TreeLayout::kLinen: return "Linen";
    case TreeLayout::kSingleParams: return "Linen with one params level";
    case TreeLayout::kNnx: return "NNX";
    case TreeLayout::kNnxUnderBase: return "NNX under base";
  }
  return "unknown";
}

Result<CanonicalTree> canonical_tree(std::span<const LeafPath> leaves) {
  const auto layout = detect(leaves);
  if (!layout)
    return fail(ErrorKind::kUnsupported,
                "found no parameter tree of MaxText: expected decoder below params/params, params, base or the root, found "
                "{}",
                top_of(leaves));
  return Canonicalizer(leaves, *layout).run();
}

LeafPath linen_path(std::string_view canonical_name) {
  LeafPath path = {"params"};
  const size_t slash = canonical_name.find('/');
  path.emplace_back(canonical_name.substr(0, slash));
  std::string_view rest = slash == std::string_view::npos ? std::string_view() : canonical_name.substr(slash + 1);
  while (!rest.empty()) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    path.emplace_back(rest.substr(0, dot));
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return path;
}

Result<bool> resolve_scan_layers(std::optional<bool> in_tree, std::optional<bool> recorded, std::optional<bool> asked) {
  if (in_tree && recorded && *in_tree != *recorded)
    return fail(ErrorKind::kInvalidArgument,
                "the checkpoint's metadata says scan_layers={}, but its tree holds {} layers; it was edited or mixed from two "
                "checkpoints",
                truth(*recorded), *in_tree ? "stacked" : "numbered");
  const std::optional<bool> found = in_tree ? in_tree : recorded;
  if (found && asked && *found != *asked)
    return fail(ErrorKind::kInvalidArgument,
                "scan_layers={} was asked for, but the checkpoint was saved with scan_layers={} ({}); leave the argument out",
                truth(*asked), truth(*found), in_tree ? "its tree tells" : "its metadata tells");
  return found.value_or(asked.value_or(true));
}

}  // namespace maxport::maxtext
