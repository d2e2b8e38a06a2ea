// Hugging Face with MaxText: every parameter derived from the model again, as a conversion derives it.
#include <algorithm>
#include <map>
#include <set>

#include "compare/pairs.h"
#include "convert/checkpoint_source.h"
#include "convert/model_source.h"

namespace maxport::compare {
namespace {

using convert::CheckpointSource;
using convert::ModelSource;

/// The type that most of the model's elements have, as far as a conversion can keep it; others become float32.
DType prevailing_dtype(const ModelSource& model) {
  if (model.identity().layout.float8_weights) return DType::kFloat8E4m3fn;
  std::map<DType, int64_t> elements;
  for (const auto& [name, tensor] : model.directory().tensors())
    if (is_floating(tensor.info->dtype)) elements[tensor.info->dtype] += element_count(tensor.info->shape);
  const auto most = std::ranges::max_element(elements, {}, [](const auto& entry) { return entry.second; });
  return most != elements.end() && most->first == DType::kBfloat16 ? DType::kBfloat16 : DType::kFloat32;
}

/// The settings that make a conversion of the model lay out its parameters as the checkpoint does.
std::vector<maxtext::Override> layout_settings(const models::MaxTextLayout& layout, const Options& options) {
  const std::map<std::string, std::string> found{{"scan_layers", layout.scan_layers ? "true" : "false"},
                                                 {"param_scan_axis", std::to_string(layout.param_scan_axis)},
                                                 {"use_multimodal", layout.use_multimodal ? "true" : "false"},
                                                 {"use_audio", layout.use_audio ? "true" : "false"},
                                                 {"mtp_num_layers", std::to_string(layout.mtp_num_layers)}};
  std::vector<maxtext::Override> out = options.settings;
  std::erase_if(out, [&](const maxtext::Override& given) { return found.contains(given.key); });
  for (const auto& [key, value] : found) out.push_back({key, value});
  const bool vocabulary = std::ranges::any_of(out, [](const auto& given) { return given.key == "vocab_size"; });
  if (layout.vocab_size && !vocabulary) out.push_back({"vocab_size", std::to_string(*layout.vocab_size)});
  return out;
}

class ModelPairing {
 public:
  ModelPairing(Pairs& pairs, const ModelSource& model, const CheckpointSource& checkpoint, bool model_is_a)
      : pairs_(pairs), model_(model), checkpoint_(checkpoint), model_is_a_(model_is_a), dtype_(prevailing_dtype(model)) {}

  Result<> pair() {
    list_faults();
    std::map<std::string, const orbax::CheckpointLeaf*> stored;
    const auto& planned = checkpoint_.plan().leaves;
    for (size_t i = 0; i < planned.size(); ++i) stored[planned[i].checkpoint_name()] = checkpoint_.stored_leaves()[i];
    for (const plan::Leaf& leaf : model_.plan().leaves)
      MAXPORT_RETURN_IF_ERROR(with_context(pair_leaf(leaf, stored[leaf.checkpoint_name()]), leaf.path));
    for (const std::string& name : checkpoint_.mismatches().left_over) pairs_.only_in(!model_is_a_, name, {});
    return {};
  }

 private:
  /// What the model lacks, has besides, or has in another shape.
  void list_faults() {
    for (const plan::Fault& fault : model_.account().faults) {
      const auto tensor = model_.directory().tensors().find(fault.name);
      if (fault.kind == plan::FaultKind::kUnused && tensor != model_.directory().tensors().end())
        pairs_.only_in(model_is_a_, fault.name, {tensor->second.info->dtype, tensor->second.info->shape});
      else
        pairs_.note(fault.text);
      if (fault.kind != plan::FaultKind::kUnused) unusable_.insert(fault.name);
    }
    std::map<std::string, size_t> reasons;
    for (const plan::IgnoredTensor& ignored : model_.account().ignored) ++reasons[ignored.reason];
    for (const auto& [reason, count] : reasons) pairs_.note(fmt::format("{} tensors of the model are left out: {}", count, reason));
    for (const models::EqualTensors& pair : model_.map().equal) {
      if (model_.check_equal_tensors()) break;
      const auto dropped = model_.directory().tensors().find(pair.dropped);
      pairs_.note(fmt::format("{}, but {} and {} differ", pair.reason, pair.kept, pair.dropped));
      if (dropped != model_.directory().tensors().end())
        pairs_.only_in(model_is_a_, pair.dropped, {dropped->second.info->dtype, dropped->second.info->shape});
    }
  }

  Result<> pair_leaf(const plan::Leaf& leaf, const orbax::CheckpointLeaf* stored) {
    const bool derivable = std::ranges::none_of(model_.plan().links_of(leaf), [&](const plan::Link& link) {
      return unusable_.contains(model_.plan().tensors[link.tensor].name);
    });
    if (!derivable) {
      if (stored != nullptr) pairs_.only_in(!model_is_a_, leaf.path, {stored->dtype, stored->shape});
      return {};
    }
    MAXPORT_ASSIGN_OR_RETURN(engine::LeafReader reader, engine::LeafReader::create(model_.plan(), leaf, model_, dtype_));
    const TensorSide derived{reader.dtype(), leaf.shape};
    if (stored == nullptr) {
      list_unstored(leaf, derived);
      return {};
    }
    // Where the checkpoint has another type, its elements are compared with what a conversion to that type gives.
    if (stored->dtype != reader.dtype() && (stored->dtype == DType::kFloat32 || stored->dtype == DType::kBfloat16)) {
      MAXPORT_ASSIGN_OR_RETURN(reader, engine::LeafReader::create(model_.plan(), leaf, model_, stored->dtype));
    }
    const WindowReader& mine = pairs_.keep(read_array(*stored->array));
    const WindowReader& theirs = pairs_.keep(read_leaf(std::move(reader)));
    pairs_.add_whole(leaf.path, !model_is_a_, mine, side_of(mine), theirs, derived, {&model_.plan(), &leaf});
    return {};
  }

  void list_unstored(const plan::Leaf& leaf, const TensorSide& derived) {
    for (const auto& other : checkpoint_.mismatches().misshapen) {
      if (other.name.substr(other.name.find('/') + 1) != leaf.path) continue;
      const TensorSide stored{derived.dtype, other.stored};
      if (model_is_a_)
        pairs_.entry(leaf.path, derived, stored);
      else
        pairs_.entry(leaf.path, stored, derived);
      return;
    }
    pairs_.only_in(model_is_a_, leaf.path, derived);
  }

  Pairs& pairs_;
  const ModelSource& model_;
  const CheckpointSource& checkpoint_;
  bool model_is_a_;
  DType dtype_;
  std::set<std::string, std::less<>> unusable_;
};

}  // namespace

Result<> pair_model_with_checkpoint(Storage& storage, const std::string& model, const std::string& checkpoint, bool model_is_a, Pairs& pairs) {
  MAXPORT_ASSIGN_OR_RETURN(const convert::PathKind kind, convert::path_kind(storage, model));
  if (kind == convert::PathKind::kWeightFile)
    return fail(ErrorKind::kInvalidArgument, "{} is one weight file; a checkpoint is compared with a model folder, which has a config.json", printable(model));
  MAXPORT_ASSIGN_OR_RETURN(const maxtext::Settings settings, maxtext::Settings::load(storage, {{}, pairs.options().settings, {}}));
  convert::CheckpointRequest request{.path = checkpoint, .hf_folder = model};
  request.keep_mismatches = true;
  MAXPORT_ASSIGN_OR_RETURN(auto opened, CheckpointSource::open(storage, request, settings));
  const CheckpointSource& stored = pairs.keep(std::move(opened));
  MAXPORT_ASSIGN_OR_RETURN(const maxtext::Settings same_layout,
                           maxtext::Settings::load(storage, {{}, layout_settings(stored.layout(), pairs.options()), {}}));
  convert::ModelRequest wanted{.folder = model};
  // A tied head that the files hold all the same must equal the embedding, so it is not simply dropped.
  wanted.head = stored.layout().head == models::HeadPolicy::kUntie ? models::HeadPolicy::kUntie : models::HeadPolicy::kAuto;
  MAXPORT_ASSIGN_OR_RETURN(auto source, ModelSource::open(storage, wanted, same_layout));
  const ModelSource& derived = pairs.keep(std::move(source));
  for (const std::string& note : stored.notes()) pairs.note(note);
  (model_is_a ? pairs.report().a : pairs.report().b) = "Hugging Face, " + printable(derived.directory().roles().model_type());
  (model_is_a ? pairs.report().b : pairs.report().a) = stored.layout().scan_layers ? "MaxText, scanned" : "MaxText, unscanned";
  pairs.report().how = fmt::format("MaxText's parameters with what a conversion of the model gives ({})", derived.identity().family->title);
  return ModelPairing(pairs, derived, stored, model_is_a).pair();
}

}  // namespace maxport::compare
