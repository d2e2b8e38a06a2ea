#include "plan/check.h"

#include <algorithm>
#include <unordered_map>

#include "plan/cover.h"

namespace maxport::plan {
namespace {

Footprint maxtext_side(const Plan& plan, const Link& link) {
  const Walk& walk = plan.walks[link.walk];
  return {link.maxtext_offset, walk.extents, walk.maxtext_strides};
}

Footprint huggingface_side(const Plan& plan, const Link& link) {
  const Walk& walk = plan.walks[link.walk];
  return {link.huggingface_offset, walk.extents, walk.huggingface_strides};
}

/// A flat element number as coordinates, for messages.
std::string coordinates(int64_t element, const Shape& shape) {
  std::vector<int64_t> at(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    at[i] = element % shape[i];
    element /= shape[i];
  }
  return shape_text(at);
}

Result<> check_leaf(const Plan& plan, const Leaf& leaf, std::vector<Fault>& faults) {
  std::vector<Footprint> walks;
  for (const Link& link : plan.links_of(leaf)) walks.push_back(maxtext_side(plan, link));
  const int64_t size = element_count(leaf.shape);
  MAXPORT_ASSIGN_OR_RETURN(const Coverage coverage, with_context(cover(size, walks), leaf.path));
  if (coverage.outside) {
    faults.push_back({FaultKind::kOutside, leaf.path,
                      fmt::format("{}: a source lies outside its shape {}", leaf.path, shape_text(leaf.shape))});
  } else if (coverage.overlap_at >= 0) {
    const auto links = plan.links_of(leaf);
    faults.push_back({FaultKind::kFilledTwice, leaf.path,
                      fmt::format("{}: element {} is filled twice, by {} and by {}", leaf.path,
                                  coordinates(coverage.overlap_at, leaf.shape),
                                  plan.tensors[links[coverage.overlap_first].tensor].name,
                                  plan.tensors[links[coverage.overlap_second].tensor].name)});
  } else if (coverage.covered != size && !leaf.fill) {
    faults.push_back({FaultKind::kUnfilled, leaf.path,
                      fmt::format("{}: {} of {} elements have no source", leaf.path, size - coverage.covered, size)});
  }
  return {};
}

Result<> check_tensor(const Plan& plan, const Tensor& tensor, const std::vector<uint32_t>& links,
                      std::vector<Fault>& faults) {
  std::vector<Footprint> walks;
  for (uint32_t link : links) walks.push_back(huggingface_side(plan, plan.links[link]));
  const int64_t size = element_count(tensor.shape);
  MAXPORT_ASSIGN_OR_RETURN(const Coverage coverage, with_context(cover(size, walks), tensor.name));
  if (coverage.outside) {
    faults.push_back({FaultKind::kOutside, tensor.name,
                      fmt::format("{}: a walk leaves its shape {}", tensor.name, shape_text(tensor.shape))});
  } else if (coverage.overlap_at >= 0) {
    faults.push_back({FaultKind::kUsedTwice, tensor.name,
                      fmt::format("{}: element {} is used twice, by {} and by {}", tensor.name,
                                  coordinates(coverage.overlap_at, tensor.shape),
                                  plan.leaves[plan.links[links[coverage.overlap_first]].leaf].path,
                                  plan.leaves[plan.links[links[coverage.overlap_second]].leaf].path)});
  } else if (coverage.covered != size && tensor.drops.empty()) {
    faults.push_back({FaultKind::kPartlyUsed, tensor.name,
                      fmt::format("{}: {} of {} elements are not used", tensor.name, size - coverage.covered, size)});
  }
  return {};
}

/// "hidden_size = 64, head_dim = 32": what the shape follows from.
std::string explain_shape(const models::ParameterMap& map, const Tensor& tensor) {
  const std::string_view pattern = map.rules[tensor.rule].parts[tensor.part].pattern;
  return map.dimensions.explain(pattern.substr(0, pattern.find("->")));
}

/// Layers that names like "model.layers.7.x" speak of, as 1 + the largest number, or 0.
int64_t layers_in(std::string_view name) {
  const size_t at = name.find("layers.");
  if (at == std::string_view::npos) return 0;
  int64_t layer = -1;
  for (char c : name.substr(at + 7)) {
    if (c < '0' || c > '9' || layer > 1'000'000) break;
    layer = std::max<int64_t>(layer, 0) * 10 + (c - '0');
  }
  return layer + 1;
}

/// "config says 3 layers, weights hold 2", when that is what the faults come from.
void explain_layers(const Plan& plan, const std::vector<SourceTensor>& source, std::vector<Fault>& faults) {
  int64_t planned = 0, held = 0;
  for (const Tensor& tensor : plan.tensors) planned = std::max(planned, layers_in(tensor.name));
  for (const SourceTensor& tensor : source) held = std::max(held, layers_in(tensor.name));
  if (planned == held || held == 0) return;
  for (Fault& fault : faults)
    if (layers_in(fault.name) > std::min(planned, held))
      fault.text += fmt::format(" (config says {} layers, weights hold {})", planned, held);
}

std::string unused_text(const SourceTensor& tensor, const models::ParameterMap& map) {
  std::string text = fmt::format("{} {} in the source has no place in MaxText; --drop_unused leaves it out",
                                 tensor.name, shape_text(tensor.shape));
  for (const models::IgnoreRule& rule : map.surplus)
    if (models::matches(rule.name_pattern, tensor.name)) return text + ": " + rule.reason;
  return text;
}

}  // namespace

std::string_view fault_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kMissing:
      return "missing";
    case FaultKind::kUnused:
      return "unused";
    case FaultKind::kWrongShape:
      return "wrong shape";
    case FaultKind::kUnfilled:
      return "unfilled";
    case FaultKind::kFilledTwice:
      return "filled twice";
    case FaultKind::kPartlyUsed:
      return "partly used";
    case FaultKind::kUsedTwice:
      return "used twice";
    case FaultKind::kOutside:
      return "outside";
  }
  return "unknown";
}

Result<std::vector<Fault>> check_cover(const Plan& plan) {
  std::vector<Fault> faults;
  for (const Leaf& leaf : plan.leaves) MAXPORT_RETURN_IF_ERROR(check_leaf(plan, leaf, faults));
  const auto by_tensor = plan.links_by_tensor();
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    MAXPORT_RETURN_IF_ERROR(check_tensor(plan, plan.tensors[i], by_tensor[i], faults));
  return faults;
}

Result<Account> check(const Plan& plan, const models::ParameterMap& map, const std::vector<SourceTensor>& source) {
  Account account;
  std::unordered_map<std::string_view, const SourceTensor*> held;
  for (const SourceTensor& tensor : source) held.emplace(tensor.name, &tensor);
  std::unordered_map<std::string_view, bool> planned;
  for (const Tensor& tensor : plan.tensors) {
    planned.emplace(tensor.name, true);
    auto found = held.find(tensor.name);
    if (found == held.end()) {
      account.faults.push_back(
          {FaultKind::kMissing, tensor.name,
           fmt::format("{} {} is missing from the source", tensor.name, shape_text(tensor.shape))});
    } else if (found->second->shape != tensor.shape) {
      account.faults.push_back(
          {FaultKind::kWrongShape, tensor.name,
           fmt::format("{}: the file has shape {}, the configuration means {} ({})", tensor.name,
                       shape_text(found->second->shape), shape_text(tensor.shape), explain_shape(map, tensor))});
    } else {
      ++account.tensors_used;
    }
  }
  for (const SourceTensor& tensor : source) {
    if (planned.contains(tensor.name)) continue;
    if (const models::IgnoreRule* rule = map.find_ignored(tensor.name)) {
      account.ignored.push_back({tensor.name, rule->reason});
    } else {
      account.faults.push_back({FaultKind::kUnused, tensor.name, unused_text(tensor, map)});
    }
  }
  explain_layers(plan, source, account.faults);
  MAXPORT_ASSIGN_OR_RETURN(std::vector<Fault> cover_faults, check_cover(plan));
  account.faults.insert(account.faults.end(), cover_faults.begin(), cover_faults.end());
  for (const Leaf& leaf : plan.leaves) {
    const int64_t size = element_count(leaf.shape);
    int64_t linked = 0;
    for (const Link& link : plan.links_of(leaf)) linked += element_count(plan.walks[link.walk].extents);
    account.elements += size;
    if (linked < size && leaf.fill) account.elements_filled_in += size - linked;
    if (linked == size || leaf.fill) ++account.leaves_filled;
  }
  return account;
}

std::vector<Fault> check_leaves(const Plan& plan, const std::vector<HeldLeaf>& held) {
  std::vector<Fault> faults;
  std::unordered_map<std::string_view, const HeldLeaf*> unused;
  for (const HeldLeaf& leaf : held) unused.emplace(leaf.name, &leaf);
  for (const Leaf& leaf : plan.leaves) {
    const std::string name = leaf.checkpoint_name();
    const auto found = unused.find(name);
    if (found == unused.end()) {
      faults.push_back({FaultKind::kMissing, name,
                        fmt::format("{} {} is missing from the checkpoint", name, shape_text(leaf.shape))});
      continue;
    }
    if (found->second->shape != leaf.shape)
      faults.push_back({FaultKind::kWrongShape, name,
                        fmt::format("{}: the checkpoint has shape {}, the configuration means {}", name,
                                    shape_text(found->second->shape), shape_text(leaf.shape))});
    unused.erase(found);
  }
  for (const HeldLeaf& leaf : held)
    if (unused.contains(leaf.name))
      faults.push_back(
          {FaultKind::kUnused, leaf.name,
           fmt::format("{} {} in the checkpoint has no place in the model", leaf.name, shape_text(leaf.shape))});
  return faults;
}

Error to_error(const Account& account) {
  constexpr size_t kShown = 12;
  std::string text =
      fmt::format("the plan does not hold, {} fault{}:", account.faults.size(), account.faults.size() == 1 ? "" : "s");
  bool all_missing = true;
  for (size_t i = 0; i < account.faults.size(); ++i) {
    const Fault& fault = account.faults[i];
    all_missing = all_missing && fault.kind == FaultKind::kMissing;
    if (i < kShown) text += fmt::format("\n  {}: {}", fault_name(fault.kind), printable(fault.text));
  }
  if (account.faults.size() > kShown) text += fmt::format("\n  ... and {} more", account.faults.size() - kShown);
  return Error(all_missing ? ErrorKind::kNotFound : ErrorKind::kInvalidArgument, std::move(text));
}

OrderedJson to_json(const Account& account) {
  OrderedJson faults = OrderedJson::array(), ignored = OrderedJson::array();
  for (const Fault& fault : account.faults)
    faults.push_back({{"kind", fault_name(fault.kind)}, {"name", fault.name}, {"text", fault.text}});
  for (const IgnoredTensor& tensor : account.ignored)
    ignored.push_back({{"name", tensor.name}, {"reason", tensor.reason}});
  return {{"tensors_used", account.tensors_used}, {"leaves_filled", account.leaves_filled},
          {"elements", account.elements},         {"elements_filled_in", account.elements_filled_in},
          {"ignored", std::move(ignored)},        {"faults", std::move(faults)}};
}

OrderedJson to_json(const Plan& plan, bool with_links) {
  OrderedJson leaves = OrderedJson::array();
  for (const Leaf& leaf : plan.leaves) {
    OrderedJson entry{{"name", leaf.checkpoint_name()}, {"shape", leaf.shape}, {"stack_axes", leaf.stack_axes}};
    if (!leaf.arithmetic.name.empty()) entry["arithmetic"] = leaf.arithmetic.name;
    if (leaf.fill) entry["fill"] = *leaf.fill;
    if (with_links) {
      OrderedJson pieces = OrderedJson::array();
      for (const Link& link : plan.links_of(leaf)) {
        const Walk& walk = plan.walks[link.walk];
        pieces.push_back({{"source", plan.tensors[link.tensor].name},
                          {"source_offset", link.huggingface_offset},
                          {"target_offset", link.maxtext_offset},
                          {"extents", walk.extents},
                          {"source_strides", walk.huggingface_strides},
                          {"target_strides", walk.maxtext_strides}});
      }
      entry["pieces"] = std::move(pieces);
    }
    leaves.push_back(std::move(entry));
  }
  OrderedJson tensors = OrderedJson::array();
  for (const Tensor& tensor : plan.tensors) {
    OrderedJson entry{{"name", tensor.name}, {"shape", tensor.shape}};
    if (!tensor.drops.empty()) entry["drops"] = tensor.drops;
    tensors.push_back(std::move(entry));
  }
  return {{"leaves", std::move(leaves)}, {"tensors", std::move(tensors)}};
}

}  // namespace maxport::plan
