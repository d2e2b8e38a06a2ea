// MaxText with MaxText: parameters of one name, or, scanned with unscanned, what is one Hugging Face tensor.
#include <algorithm>
#include <map>

#include "compare/pairs.h"
#include "convert/checkpoint_source.h"
#include "convert/to_maxtext.h"

namespace maxport::compare {
namespace {

using convert::CheckpointSource;

struct Parameters {
  std::map<std::string, const orbax::CheckpointLeaf*> leaves;
  std::optional<maxtext::CanonicalTree> tree;  ///< nothing when it is no tree of MaxText's
};

Parameters parameters_of(const orbax::Checkpoint& checkpoint) {
  Parameters out;
  std::vector<maxtext::LeafPath> paths;
  for (const orbax::CheckpointLeaf& leaf : checkpoint.leaves()) {
    paths.emplace_back();
    for (const orbax::KeyPart& part : leaf.path) paths.back().push_back(part.key);
  }
  if (auto tree = maxtext::canonical_tree(paths)) out.tree = std::move(*tree);
  return out;
}

/// Canonical names, without the collection where it says nothing; plain names where a side is no tree of MaxText's.
void name_leaves(const orbax::Checkpoint& checkpoint, Parameters& parameters, bool canonical, bool collections) {
  if (!canonical) {
    for (const orbax::CheckpointLeaf& leaf : checkpoint.leaves())
      if (leaf.array) parameters.leaves[leaf.name] = &leaf;
    return;
  }
  for (const maxtext::CanonicalLeaf& leaf : parameters.tree->parameters) {
    const size_t slash = leaf.name.find('/');
    const bool shown = collections && !leaf.name.starts_with("params/");
    const orbax::CheckpointLeaf& stored = checkpoint.leaves()[leaf.index];
    if (stored.array) parameters.leaves[shown ? leaf.name : leaf.name.substr(slash + 1)] = &stored;
  }
}

std::string described(const Parameters& parameters) {
  if (!parameters.tree) return "Orbax";
  const auto& scan = parameters.tree->scan_layers;
  return fmt::format("MaxText, {}{}", maxtext::tree_layout_name(parameters.tree->layout), !scan ? "" : *scan ? ", scanned" : ", unscanned");
}

void pair_by_name(Pairs& pairs, const Parameters& a, const Parameters& b) {
  for (const auto& [name, leaf] : b.leaves)
    if (!a.leaves.contains(name)) pairs.only_in(false, name, {leaf->dtype, leaf->shape});
  for (const auto& [name, leaf] : a.leaves) {
    const auto found = b.leaves.find(name);
    if (found == b.leaves.end()) {
      pairs.only_in(true, name, {leaf->dtype, leaf->shape});
      continue;
    }
    const WindowReader& mine = pairs.keep(read_array(*leaf->array));
    const WindowReader& theirs = pairs.keep(read_array(*found->second->array));
    pairs.add_whole(name, true, mine, side_of(mine), theirs, side_of(theirs));
  }
}

/// The positions along one axis that a link fills: runs of one length, ascending.
struct AxisRuns {
  std::vector<int64_t> begins{0};
  int64_t length = 1;
};

/// `steps` holds extent and step of each index on the axis.
AxisRuns axis_runs(std::vector<std::pair<int64_t, int64_t>> steps) {
  AxisRuns out;
  std::ranges::sort(steps, {}, &std::pair<int64_t, int64_t>::second);
  for (const auto& [extent, step] : steps) {
    if (step == out.length && out.begins.size() == 1) {
      out.length *= extent;
      continue;
    }
    std::vector<int64_t> begins;
    for (int64_t i = 0; i < extent; ++i)
      for (const int64_t begin : out.begins) begins.push_back(begin + i * step);
    out.begins = std::move(begins);
  }
  return out;
}

/// The boxes of its leaf that a link fills. Most fill one; where MaxText interleaves several tensors along an axis, as in
/// fused projections, each group of positions is a box.
std::vector<Box> dense_boxes(const plan::Plan& plan, const plan::Link& link) {
  const plan::Leaf& leaf = plan.leaves[link.leaf];
  const plan::Walk& walk = plan.walks[link.walk];
  const std::vector<int64_t> strides = row_major_strides(leaf.shape);
  std::vector<std::vector<std::pair<int64_t, int64_t>>> steps(strides.size());
  for (size_t i = 0; i < walk.extents.size(); ++i) {
    if (walk.extents[i] == 1) continue;
    size_t axis = 0;
    while (leaf.shape[axis] == 1 || strides[axis] > walk.maxtext_strides[i]) ++axis;
    steps[axis].emplace_back(walk.extents[i], walk.maxtext_strides[i] / strides[axis]);
  }
  std::vector<Box> out{Box::whole(leaf.shape)};
  int64_t rest = link.maxtext_offset;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    const AxisRuns runs = axis_runs(std::move(steps[axis]));
    std::vector<Box> cut;
    for (const Box& box : out)
      for (const int64_t begin : runs.begins) {
        cut.push_back(box);
        cut.back().origin[axis] = rest / strides[axis] + begin;
        cut.back().shape[axis] = runs.length;
      }
    rest %= strides[axis];
    out = std::move(cut);
  }
  return out;
}

/// Scanned with unscanned. Nothing is computed: what the map calls one tensor is stored on both sides, with the same
/// arithmetic applied, and only lies at other places.
class ThroughTheMap {
 public:
  ThroughTheMap(Pairs& pairs, const CheckpointSource& scanned, const CheckpointSource& unscanned, bool scanned_is_a)
      : pairs_(pairs), scanned_(scanned), unscanned_(unscanned), scanned_is_a_(scanned_is_a), links_(unscanned.plan().links_by_tensor()) {
    for (uint32_t i = 0; i < unscanned.plan().tensors.size(); ++i) tensors_[unscanned.plan().tensors[i].name] = i;
    for (size_t i = 0; i < unscanned.plan().leaves.size(); ++i) leaves_[unscanned.plan().leaves[i].checkpoint_name()] = i;
    readers_.resize(unscanned.plan().leaves.size());
  }

  Result<> pair() {
    const plan::Plan& plan = scanned_.plan();
    size_t constants = 0;
    for (size_t i = 0; i < plan.leaves.size(); ++i) {
      const plan::Leaf& leaf = plan.leaves[i];
      const auto same = leaves_.find(leaf.checkpoint_name());
      if (same != leaves_.end() && scanned_.stored_leaves()[i] != nullptr && unscanned_.stored_leaves()[same->second] != nullptr)
        pair_whole(i, same->second);
      else if (leaf.link_count == 0)
        ++constants;
      else
        MAXPORT_RETURN_IF_ERROR(pair_links(i));
    }
    find_rest();
    if (constants > 0) pairs_.note(fmt::format("{} stacked constants of MaxText's model are no part of the map and were not compared", constants));
    list_mismatches(scanned_, scanned_is_a_);
    list_mismatches(unscanned_, !scanned_is_a_);
    return {};
  }

 private:
  const WindowReader& reader(size_t leaf) {
    if (readers_[leaf] == nullptr) readers_[leaf] = &pairs_.keep(read_array(*unscanned_.stored_leaves()[leaf]->array));
    return *readers_[leaf];
  }

  void pair_whole(size_t leaf, size_t other) {
    const plan::Leaf& planned = scanned_.plan().leaves[leaf];
    const WindowReader& mine = pairs_.keep(read_array(*scanned_.stored_leaves()[leaf]->array));
    const WindowReader& theirs = reader(other);
    const LeafPlan plan{&scanned_.plan(), &planned};
    const auto links = scanned_.plan().links_of(planned);
    for (const plan::Link& link : links) ++seen_[scanned_.plan().tensors[link.tensor].name];
    pairs_.add_whole(links.size() == 1 ? scanned_.plan().tensors[links[0].tensor].name : planned.path, scanned_is_a_, mine,
                     side_of(mine), theirs, side_of(theirs), plan);
  }

  /// One entry a Hugging Face tensor; leaves may share it.
  Result<> pair_links(size_t index) {
    const plan::Plan& plan = scanned_.plan();
    const plan::Leaf& leaf = plan.leaves[index];
    if (scanned_.stored_leaves()[index] == nullptr) return {};  // its tensors turn up in find_rest()
    Job job{&pairs_.keep(read_array(*scanned_.stored_leaves()[index]->array)), scanned_is_a_, {}};
    for (const plan::Link& link : plan.links_of(leaf)) {
      const plan::Tensor& tensor = plan.tensors[link.tensor];
      ++seen_[tensor.name];
      MAXPORT_ASSIGN_OR_RETURN(const plan::Link* other, counterpart(link));
      const TensorSide side{job.primary->dtype(), tensor.shape};
      if (other == nullptr || unscanned_.stored_leaves()[other->leaf] == nullptr) {
        if (listed_.insert({tensor.name, 0}).second) pairs_.only_in(scanned_is_a_, tensor.name, side);
        continue;
      }
      const WindowReader& theirs = reader(other->leaf);
      auto [entry, added] = entries_.try_emplace(tensor.name, 0);
      const TensorSide other_side{theirs.dtype(), tensor.shape};
      if (added) entry->second = scanned_is_a_ ? pairs_.entry(tensor.name, side, other_side) : pairs_.entry(tensor.name, other_side, side);
      const std::vector<Box> boxes = dense_boxes(plan, link), other_boxes = dense_boxes(unscanned_.plan(), *other);
      for (size_t i = 0; i < boxes.size(); ++i) job.parts.push_back({boxes[i], &theirs, other_boxes[i], entry->second});
    }
    pairs_.add_job(std::move(job), {&plan, &leaf}, leaf.path);
    return {};
  }

  /// The link of the other side that holds the same elements of the same tensor in the same order; null when that has
  /// nothing of the tensor.
  Result<const plan::Link*> counterpart(const plan::Link& link) const {
    const plan::Plan &plan = scanned_.plan(), &other_plan = unscanned_.plan();
    const auto tensor = tensors_.find(plan.tensors[link.tensor].name);
    if (tensor == tensors_.end() || links_[tensor->second].empty()) return nullptr;
    for (const uint32_t i : links_[tensor->second]) {
      const plan::Link& other = other_plan.links[i];
      if (other.huggingface_offset != link.huggingface_offset) continue;
      if (steps(plan, link) == steps(other_plan, other) && same_extents(dense_boxes(plan, link), dense_boxes(other_plan, other))) return &other;
    }
    return fail(ErrorKind::kUnsupported, "{}: the two layouts cut it in different ways; convert both to Hugging Face and compare those",
                printable(plan.tensors[link.tensor].name));
  }

  /// Extents and strides within the tensor, without indices of one value.
  static std::vector<std::pair<int64_t, int64_t>> steps(const plan::Plan& plan, const plan::Link& link) {
    const plan::Walk& walk = plan.walks[link.walk];
    std::vector<std::pair<int64_t, int64_t>> out;
    for (size_t i = 0; i < walk.extents.size(); ++i)
      if (walk.extents[i] != 1) out.emplace_back(walk.extents[i], walk.huggingface_strides[i]);
    return out;
  }

  static bool same_extents(const std::vector<Box>& a, const std::vector<Box>& b) {
    const auto squeezed = [](const Box& box) {
      Shape out = box.shape;
      std::erase(out, 1);
      return out;
    };
    return std::ranges::equal(a, b, {}, squeezed, squeezed);
  }

  /// Tensors that only the unscanned side holds.
  void find_rest() {
    const plan::Plan& plan = unscanned_.plan();
    for (size_t i = 0; i < plan.leaves.size(); ++i) {
      if (unscanned_.stored_leaves()[i] == nullptr) continue;
      for (const plan::Link& link : plan.links_of(plan.leaves[i])) {
        const plan::Tensor& tensor = plan.tensors[link.tensor];
        if (!seen_.contains(tensor.name) && listed_.insert({tensor.name, 0}).second)
          pairs_.only_in(!scanned_is_a_, tensor.name, {unscanned_.stored_leaves()[i]->dtype, tensor.shape});
      }
    }
  }

  void list_mismatches(const CheckpointSource& source, bool is_a) {
    for (const auto& leaf : source.mismatches().misshapen)
      pairs_.note(fmt::format("{}: {} is {}, the configuration means {}", is_a ? "A" : "B", leaf.name, shape_text(leaf.stored), shape_text(leaf.planned)));
    for (const std::string& name : source.mismatches().left_over) {
      const auto stored = std::ranges::find_if(source.checkpoint().leaves(), [&](const auto& leaf) { return leaf.name.ends_with(name.substr(name.find('/') + 1)); });
      pairs_.only_in(is_a, name, stored == source.checkpoint().leaves().end() ? TensorSide{} : TensorSide{stored->dtype, stored->shape});
    }
  }

  Pairs& pairs_;
  const CheckpointSource &scanned_, &unscanned_;
  bool scanned_is_a_;
  std::vector<std::vector<uint32_t>> links_;  // of the unscanned plan, by tensor
  std::map<std::string, uint32_t> tensors_;   // of the unscanned plan
  std::map<std::string, size_t> leaves_;      // of the unscanned plan
  std::vector<const WindowReader*> readers_;  // by unscanned leaf
  std::map<std::string, size_t> entries_, seen_;
  std::map<std::string, int> listed_;
};

Result<> pair_through_map(Storage& storage, const std::string& a, const std::string& b, const orbax::Checkpoint& checkpoint_a,
                          const orbax::Checkpoint& checkpoint_b, bool scanned_is_a, Pairs& pairs) {
  std::vector<maxtext::Override> overrides = pairs.options().settings;
  std::erase_if(overrides, [](const maxtext::Override& o) { return o.key == "scan_layers"; });
  MAXPORT_ASSIGN_OR_RETURN(const maxtext::Settings settings, maxtext::Settings::load(storage, {{}, overrides, {}}));
  const auto open = [&](const std::string& path, const orbax::Checkpoint& other) -> Result<std::unique_ptr<CheckpointSource>> {
    convert::CheckpointRequest request{.path = path, .hf_folder = pairs.options().hf_folder};
    request.other_record = join_path(other.path().step_directory, convert::kRecordFile);
    request.keep_mismatches = true;
    return CheckpointSource::open(storage, request, settings);
  };
  MAXPORT_ASSIGN_OR_RETURN(auto source_a, open(a, checkpoint_b));
  MAXPORT_ASSIGN_OR_RETURN(auto source_b, open(b, checkpoint_a));
  const CheckpointSource &left = pairs.keep(std::move(source_a)), &right = pairs.keep(std::move(source_b));
  for (const CheckpointSource* source : {&left, &right})
    for (const std::string& note : source->notes()) pairs.note(fmt::format("{}: {}", source == &left ? "A" : "B", note));
  pairs.report().how = fmt::format("stored elements of one Hugging Face tensor, by the parameter map of {} and {}", left.family().title,
                                   printable(left.config_source()));
  if (scanned_is_a) return ThroughTheMap(pairs, left, right, true).pair();
  return ThroughTheMap(pairs, right, left, false).pair();
}

}  // namespace

Result<> pair_checkpoints(Storage& storage, const std::string& a, const std::string& b, Pairs& pairs) {
  MAXPORT_ASSIGN_OR_RETURN(auto opened_a, orbax::Checkpoint::open(storage, a));
  MAXPORT_ASSIGN_OR_RETURN(auto opened_b, orbax::Checkpoint::open(storage, b));
  const orbax::Checkpoint &left = pairs.keep(std::move(opened_a)), &right = pairs.keep(std::move(opened_b));
  Parameters parameters_a = parameters_of(left), parameters_b = parameters_of(right);
  pairs.report().a = described(parameters_a);
  pairs.report().b = described(parameters_b);
  const bool canonical = parameters_a.tree && parameters_b.tree;
  if (canonical && parameters_a.tree->scan_layers && parameters_b.tree->scan_layers &&
      *parameters_a.tree->scan_layers != *parameters_b.tree->scan_layers)
    return pair_through_map(storage, a, b, left, right, *parameters_a.tree->scan_layers, pairs);
  const bool collections = canonical && parameters_a.tree->collections_known && parameters_b.tree->collections_known;
  name_leaves(left, parameters_a, canonical, collections);
  name_leaves(right, parameters_b, canonical, collections);
  pairs.report().how = "parameters of one name";
  if (canonical)
    for (const Parameters* side : {&parameters_a, &parameters_b})
      for (const std::string& root : side->tree->skipped_roots)
        pairs.note(fmt::format("{}: {} is left out: no parameters", side == &parameters_a ? "A" : "B", printable(root)));
  pair_by_name(pairs, parameters_a, parameters_b);
  return {};
}

}  // namespace maxport::compare
