#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/checked.h"
#include "plan/plan.h"

namespace maxport::plan {
namespace {

using models::LayerGroup;
using models::ParameterMap;
using models::Part;
using models::Pattern;
using models::Rule;
using models::TensorForm;

/// Twenty times what the largest model needs; stops a configuration that states absurd numbers of layers and experts.
constexpr int64_t kMostLinks = int64_t{1} << 22;

/// Positions of the layer loops, e.g. (block, position in block).
using LoopPosition = std::vector<int64_t>;

/// Replaces each {name} by the value that `lookup` gives; an unknown name stays as it is.
template <class Lookup>
std::string fill_in(std::string_view text, Lookup lookup) {
  std::string out;
  while (!text.empty()) {
    const size_t open = text.find('{');
    const size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) break;
    out.append(text.substr(0, open));
    out.append(lookup(text.substr(open + 1, close - open - 1)));
    text.remove_prefix(close + 1);
  }
  return out.append(text);
}

/// Element stride of every index and the constant element offset of a tensor form.
struct FlatForm {
  std::vector<int64_t> strides;  // by index; 0 and absent when the index does not occur
  std::vector<bool> present;
  int64_t offset = 0;
};

FlatForm flatten(const TensorForm& form, std::span<const int64_t> element_strides, size_t index_count) {
  FlatForm flat{std::vector<int64_t>(index_count, 0), std::vector<bool>(index_count, false), 0};
  for (size_t axis = 0; axis < form.axes.size(); ++axis) {
    flat.offset += form.axes[axis].offset * element_strides[axis];
    for (const models::Term& term : form.axes[axis].terms) {
      flat.strides[static_cast<size_t>(term.index)] = term.stride * element_strides[axis];
      flat.present[static_cast<size_t>(term.index)] = true;
    }
  }
  return flat;
}

class Builder {
 public:
  explicit Builder(const ParameterMap& map) : map_(map) {}

  Result<Plan> run() {
    for (const Rule& rule : map_.rules) {
      MAXPORT_RETURN_IF_ERROR(with_context(add_rule(rule), "the rule for " + rule.maxtext));
      ++rule_;
    }
    return std::move(plan_);
  }

 private:
  /// The rule's patterns, parsed once, and the shapes that follow from them.
  struct Context {
    const Rule& rule;
    std::vector<Pattern> patterns;
    Shape shape;                  // of the leaf, loops included
    std::vector<int> stack_axes;  // where the loops went
    std::vector<int64_t> leaf_strides;
    std::vector<uint32_t> walks;  // one a part
  };

  Result<> add_rule(const Rule& rule) {
    MAXPORT_ASSIGN_OR_RETURN(Context context, prepare(rule));
    if (!rule.layers) return add_leaf(context, 0, 0, nullptr);
    if (rule.layers->stacked) return add_leaf(context, rule.layers->first_layer, 0, &*rule.layers);
    // Unscanned: one leaf a layer.
    int64_t index = 0;
    LoopPosition at(rule.layers->loops.size(), 0);
    do {
      MAXPORT_RETURN_IF_ERROR(add_leaf(context, layer_at(*rule.layers, at), index++, nullptr));
    } while (advance(*rule.layers, at));
    return {};
  }

  static int64_t layer_at(const LayerGroup& group, const LoopPosition& at) {
    int64_t layer = group.first_layer;
    for (size_t i = 0; i < at.size(); ++i) layer += at[i] * group.loops[i].stride;
    return layer;
  }

  static bool advance(const LayerGroup& group, LoopPosition& at) {
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < group.loops[i].count) return true;
      at[i] = 0;
    }
    return false;
  }

  Result<Context> prepare(const Rule& rule) {
    Context context{rule, {}, {}, {}, {}, {}};
    Shape slice;
    if (rule.parts.empty()) {
      MAXPORT_ASSIGN_OR_RETURN(Pattern constant, parse_pattern("-> " + rule.constant_shape, map_.dimensions));
      slice = constant.maxtext.shape();
    }
    for (const Part& part : rule.parts) {
      MAXPORT_ASSIGN_OR_RETURN(Pattern pattern, parse_pattern(part.pattern, map_.dimensions));
      const Shape shape = pattern.maxtext.shape();
      if (!context.patterns.empty() && shape != slice)
        return fail(ErrorKind::kInternal, "its parts give the shapes {} and {}", shape_text(slice), shape_text(shape));
      slice = shape;
      context.patterns.push_back(std::move(pattern));
    }
    MAXPORT_RETURN_IF_ERROR(place_loops(context, slice));
    for (const Pattern& pattern : context.patterns) {
      MAXPORT_ASSIGN_OR_RETURN(uint32_t walk, add_walk(context, pattern));
      context.walks.push_back(walk);
    }
    return context;
  }

  /// Inserts the layer loops into the slice's shape at the scan axis (hooks.md 1.5).
  Result<> place_loops(Context& context, const Shape& slice) {
    context.shape = slice;
    const auto& layers = context.rule.layers;
    if (layers && layers->stacked) {
      const auto at =
          std::min<size_t>(static_cast<size_t>(context.rule.stack_axis.value_or(map_.param_scan_axis)), slice.size());
      for (size_t i = 0; i < layers->loops.size(); ++i) {
        context.shape.insert(context.shape.begin() + static_cast<std::ptrdiff_t>(at + i), layers->loops[i].count);
        context.stack_axes.push_back(static_cast<int>(at + i));
      }
    }
    if (!checked_product(context.shape))
      return fail(ErrorKind::kResourceLimit, "shape {} has more than 2^63 elements", shape_text(context.shape));
    context.leaf_strides = row_major_strides(context.shape);
    return {};
  }

  /// Element strides of the slice's own axes within the leaf.
  static std::vector<int64_t> slice_strides(const Context& context) {
    std::vector<int64_t> strides;
    for (size_t axis = 0; axis < context.shape.size(); ++axis)
      if (std::ranges::find(context.stack_axes, static_cast<int>(axis)) == context.stack_axes.end())
        strides.push_back(context.leaf_strides[axis]);
    return strides;
  }

  /// The indices that both sides share become the walk; those that only the MaxText side has must be part of the
  /// tensor's name.
  Result<uint32_t> add_walk(const Context& context, const Pattern& pattern) {
    const size_t count = pattern.names.size();
    const FlatForm maxtext = flatten(pattern.maxtext, slice_strides(context), count);
    const FlatForm huggingface = flatten(pattern.huggingface, row_major_strides(pattern.huggingface.shape()), count);
    Walk walk;
    std::vector<size_t> order;
    for (size_t i = 0; i < count; ++i) {
      if (huggingface.present[i] && !maxtext.present[i])
        return fail(ErrorKind::kInternal, "index \"{}\" has no place in MaxText", pattern.names[i]);
      if (huggingface.present[i]) order.push_back(i);
    }
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return maxtext.strides[a] > maxtext.strides[b]; });
    for (size_t i : order) {
      walk.extents.push_back(pattern.sizes[i]);
      walk.huggingface_strides.push_back(huggingface.strides[i]);
      walk.maxtext_strides.push_back(maxtext.strides[i]);
    }
    plan_.walks.push_back(std::move(walk));
    return static_cast<uint32_t>(plan_.walks.size() - 1);
  }

  Result<> add_leaf(const Context& context, int64_t layer, int64_t index, const LayerGroup* stacked) {
    Leaf leaf;
    leaf.collection = context.rule.collection;
    leaf.path = fill_in(context.rule.maxtext, [&](std::string_view name) {
      if (name == "layer") return std::to_string(layer);
      if (name == "index") return std::to_string(index);
      if (name == "number") return std::to_string(index + 1);
      return fmt::format("{{{}}}", name);
    });
    leaf.shape = context.shape;
    leaf.stack_axes = context.stack_axes;
    leaf.arithmetic = context.rule.arithmetic;
    leaf.fill = context.rule.fill;
    leaf.first_link = static_cast<uint32_t>(plan_.links.size());
    if (!leaf_names_.emplace(leaf.collection + "." + leaf.path, plan_.leaves.size()).second)
      return fail(ErrorKind::kInternal, "two rules fill {}", leaf.path);
    for (size_t part = 0; part < context.patterns.size(); ++part)
      MAXPORT_RETURN_IF_ERROR(add_links(context, part, layer, stacked));
    leaf.link_count = static_cast<uint32_t>(plan_.links.size()) - leaf.first_link;
    plan_.leaves.push_back(std::move(leaf));
    return {};
  }

  /// Before anything is allocated for them.
  Result<> check_count(const Pattern& pattern, const std::vector<size_t>& outer, const LayerGroup* stacked) const {
    Shape counts;
    for (size_t i : outer) counts.push_back(pattern.sizes[i]);
    if (stacked)
      for (const LayerGroup::Loop& loop : stacked->loops) counts.push_back(loop.count);
    const auto count = checked_product(counts);
    if (!count || *count > kMostLinks - static_cast<int64_t>(plan_.links.size()))
      return fail(ErrorKind::kResourceLimit, "the model would have more than {} tensors", kMostLinks);
    return {};
  }

  /// One link for every combination of layer loop and name index.
  Result<> add_links(const Context& context, size_t part, int64_t layer, const LayerGroup* stacked) {
    const Pattern& pattern = context.patterns[part];
    const FlatForm maxtext = flatten(pattern.maxtext, slice_strides(context), pattern.names.size());
    const FlatForm huggingface =
        flatten(pattern.huggingface, row_major_strides(pattern.huggingface.shape()), pattern.names.size());
    std::vector<size_t> outer;  // indices that choose a tensor rather than an element
    for (size_t i = 0; i < pattern.names.size(); ++i)
      if (!huggingface.present[i]) outer.push_back(i);
    MAXPORT_RETURN_IF_ERROR(check_count(pattern, outer, stacked));
    LoopPosition loops(stacked ? stacked->loops.size() : 0, 0);
    do {
      const int64_t this_layer = stacked ? layer_at(*stacked, loops) : layer;
      int64_t base = maxtext.offset;
      for (size_t i = 0; i < loops.size(); ++i)
        base += loops[i] * context.leaf_strides[static_cast<size_t>(context.stack_axes[i])];
      LoopPosition at(outer.size(), 0);
      do {
        int64_t offset = base;
        for (size_t i = 0; i < outer.size(); ++i) offset += at[i] * maxtext.strides[outer[i]];
        MAXPORT_ASSIGN_OR_RETURN(uint32_t tensor, find_tensor(context, part, this_layer, outer, at));
        plan_.links.push_back(
            {tensor, static_cast<uint32_t>(plan_.leaves.size()), context.walks[part], huggingface.offset, offset});
      } while (advance_outer(pattern, outer, at));
    } while (stacked && advance(*stacked, loops));
    return {};
  }

  static bool advance_outer(const Pattern& pattern, const std::vector<size_t>& outer, LoopPosition& at) {
    for (size_t i = outer.size(); i-- > 0;) {
      if (++at[i] < pattern.sizes[outer[i]]) return true;
      at[i] = 0;
    }
    return false;
  }

  Result<uint32_t> find_tensor(const Context& context, size_t part, int64_t layer, const std::vector<size_t>& outer,
                               const LoopPosition& at) {
    const Pattern& pattern = context.patterns[part];
    size_t used = 0;
    std::string name = fill_in(context.rule.parts[part].huggingface, [&](std::string_view variable) {
      if (variable == "layer") return std::to_string(layer);
      for (size_t i = 0; i < outer.size(); ++i) {
        if (pattern.names[outer[i]] == variable) {
          ++used;
          return std::to_string(at[i]);
        }
      }
      return fmt::format("{{{}}}", variable);
    });
    if (used != outer.size())
      return fail(ErrorKind::kInternal, "an index of \"{}\" occurs on the MaxText side only, and not in {}",
                  context.rule.parts[part].pattern, context.rule.parts[part].huggingface);
    const Shape shape = pattern.huggingface.shape();
    auto [found, is_new] = tensor_names_.try_emplace(name, static_cast<uint32_t>(plan_.tensors.size()));
    if (is_new) {
      plan_.tensors.push_back({std::move(name), shape, context.rule.drops, rule_, static_cast<uint32_t>(part)});
    } else if (plan_.tensors[found->second].shape != shape) {
      return fail(ErrorKind::kInternal, "{} has shape {} here and {} in another rule", name, shape_text(shape),
                  shape_text(plan_.tensors[found->second].shape));
    }
    return found->second;
  }

  const ParameterMap& map_;
  uint32_t rule_ = 0;  // index of the rule at hand
  Plan plan_;
  std::unordered_map<std::string, uint32_t> tensor_names_;
  std::unordered_map<std::string, size_t> leaf_names_;
};

}  // namespace

std::vector<std::vector<uint32_t>> Plan::links_by_tensor() const {
  std::vector<std::vector<uint32_t>> by_tensor(tensors.size());
  for (size_t i = 0; i < links.size(); ++i) by_tensor[links[i].tensor].push_back(static_cast<uint32_t>(i));
  return by_tensor;
}

Result<Plan> build(const models::ParameterMap& map) { return Builder(map).run(); }

DType stored_dtype(DType source, DType save_dtype, const models::Arithmetic& arithmetic) {
  if (arithmetic.keeps_float32) return DType::kFloat32;
  if (save_dtype != DType::kFloat8E4m3fn) return save_dtype;
  const bool kept = source == DType::kBfloat16 || source == DType::kFloat8E4m3fn;
  return kept ? source : DType::kFloat32;
}

}  // namespace maxport::plan
