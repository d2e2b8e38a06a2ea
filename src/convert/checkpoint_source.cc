#include "convert/checkpoint_source.h"

#include <algorithm>
#include <set>

#include "convert/to_maxtext.h"
#include "plan/check.h"

namespace maxport::convert {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{64} << 20;

Result<Json> read_json(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string text, storage.read_text(path, kMaxConfigBytes));
  return parse_json(text, printable(path));
}

std::string list(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) out += "\n  " + printable(names[i]);
  if (names.size() > kShown) out += fmt::format("\n  ... and {} more", names.size() - kShown);
  return out;
}

}  // namespace

Result<std::unique_ptr<CheckpointSource>> CheckpointSource::open(Storage& storage, const CheckpointRequest& request,
                                                                 const maxtext::Settings& settings) {
  std::unique_ptr<CheckpointSource> out(new CheckpointSource());
  MAXPORT_ASSIGN_OR_RETURN(out->checkpoint_, orbax::Checkpoint::open(storage, request.path));
  const std::string context = "in " + printable(request.path);
  MAXPORT_RETURN_IF_ERROR(with_context(out->read_tree(), context));
  MAXPORT_RETURN_IF_ERROR(out->find_config(storage, request, settings));
  MAXPORT_ASSIGN_OR_RETURN(out->family_, models::family_of(*out->config_));
  MAXPORT_RETURN_IF_ERROR(with_context(out->read_layout(settings), context));
  MAXPORT_ASSIGN_OR_RETURN(out->map_, models::parameter_map(*out->family_, {*out->config_, out->layout_, nullptr}));
  MAXPORT_ASSIGN_OR_RETURN(out->plan_, plan::build(out->map_));
  MAXPORT_RETURN_IF_ERROR(with_context(out->match_leaves(), context));
  if (!request.keep_mismatches) MAXPORT_RETURN_IF_ERROR(with_context(out->refuse_mismatches(), context));
  return out;
}

Result<> CheckpointSource::find_config(Storage& storage, const CheckpointRequest& request,
                                       const maxtext::Settings& settings) {
  const maxtext::CatalogEntry* entry = nullptr;
  if (settings.model_name()) {
    MAXPORT_ASSIGN_OR_RETURN(entry, maxtext::find_model(*settings.model_name()));
  }
  std::string record = join_path(checkpoint_->path().step_directory, kRecordFile);
  MAXPORT_ASSIGN_OR_RETURN(auto recorded, storage.kind(record));
  if (!recorded && request.other_record) {
    record = *request.other_record;
    MAXPORT_ASSIGN_OR_RETURN(recorded, storage.kind(record));
  }
  Json json;
  if (request.hf_folder) {
    config_source_ = join_path(*request.hf_folder, "config.json");
    MAXPORT_ASSIGN_OR_RETURN(json, read_json(storage, config_source_));
  } else if (recorded) {
    config_source_ = record;
    MAXPORT_ASSIGN_OR_RETURN(const Json whole, read_json(storage, record));
    if (!whole.is_object() || !whole.contains("source_config"))
      return fail(ErrorKind::kCorruptData, "{}: it has no member \"source_config\"", printable(record));
    json = whole["source_config"];
  } else if (entry != nullptr) {
    config_source_ = fmt::format("the catalog's configuration of {}", entry->name);
    json = entry->hf_config;
  } else {
    return fail(ErrorKind::kInvalidArgument,
                "which model is it? pass --hf_model_path with a folder that has its config.json, or model_name");
  }
  MAXPORT_ASSIGN_OR_RETURN(config_, huggingface::ConfigRoles::create(std::move(json), printable(config_source_)));
  if (entry == nullptr) return {};
  MAXPORT_ASSIGN_OR_RETURN(const bool override_config, settings.boolean("override_model_config"));
  MAXPORT_ASSIGN_OR_RETURN(const auto mismatches,
                           maxtext::check_model_name(*config_, *entry, override_config || request.ignore_model_name));
  for (const maxtext::ConfigMismatch& mismatch : mismatches)
    notes_.push_back(fmt::format("{}: the configuration says {}, the model name means {}; the configuration counts",
                                 mismatch.field, mismatch.in_config, mismatch.in_catalog));
  return {};
}

Result<> CheckpointSource::read_tree() {
  std::vector<maxtext::LeafPath> paths;
  for (const orbax::CheckpointLeaf& leaf : checkpoint_->leaves()) {
    maxtext::LeafPath path;
    for (const orbax::KeyPart& part : leaf.path) path.push_back(part.key);
    paths.push_back(std::move(path));
    stored_.push_back(&leaf);
  }
  MAXPORT_ASSIGN_OR_RETURN(tree_, maxtext::canonical_tree(paths));
  for (const std::string& root : tree_.skipped_roots) notes_.push_back(fmt::format("{} is left out: no parameters", root));
  for (const std::string& note : tree_.notes) notes_.push_back(note);
  return {};
}

/// Trees without collections list everything below "params/", also what MaxText keeps elsewhere.
const orbax::CheckpointLeaf* CheckpointSource::find(std::string_view canonical) const {
  std::string name(canonical);
  if (!tree_.collections_known) name = "params" + name.substr(name.find('/'));
  const auto found = std::ranges::lower_bound(tree_.parameters, name, {}, &maxtext::CanonicalLeaf::name);
  if (found == tree_.parameters.end() || found->name != name) return nullptr;
  return stored_[found->index];
}

bool CheckpointSource::any_begins(std::string_view prefix) const {
  const auto found = std::ranges::lower_bound(tree_.parameters, prefix, {}, &maxtext::CanonicalLeaf::name);
  return found != tree_.parameters.end() && found->name.starts_with(prefix);
}

Result<> CheckpointSource::read_scan(const maxtext::Settings& settings) {
  std::optional<bool> recorded, asked;
  const Json& custom = checkpoint_->step_metadata().custom_metadata;
  if (custom.is_object() && custom.contains("scan_layers") && custom["scan_layers"].is_boolean())
    recorded = custom["scan_layers"].get<bool>();
  if (settings.given("scan_layers")) {
    MAXPORT_ASSIGN_OR_RETURN(asked, settings.boolean("scan_layers"));
  }
  MAXPORT_ASSIGN_OR_RETURN(layout_.scan_layers, maxtext::resolve_scan_layers(tree_.scan_layers, recorded, asked));
  return {};
}

Result<> CheckpointSource::read_layout(const maxtext::Settings& settings) {
  MAXPORT_RETURN_IF_ERROR(read_scan(settings));
  MAXPORT_ASSIGN_OR_RETURN(layout_.param_scan_axis, settings.integer("param_scan_axis"));
  MAXPORT_ASSIGN_OR_RETURN(layout_.use_multimodal, settings.boolean("use_multimodal"));
  MAXPORT_ASSIGN_OR_RETURN(layout_.use_audio, settings.boolean("use_audio"));
  MAXPORT_ASSIGN_OR_RETURN(layout_.mtp_num_layers, settings.integer("mtp_num_layers"));
  const bool has_towers = any_begins("params/vision_encoder.") || any_begins("params/audio_encoder.");
  if (!settings.given("use_multimodal")) layout_.use_multimodal = has_towers;
  if (!settings.given("use_audio")) layout_.use_audio = any_begins("params/audio_encoder.");
  layout_.float8_weights = family_->keeps_float8 && std::ranges::any_of(tree_.parameters, [](const auto& leaf) {
    return leaf.name.ends_with("kernel_scale");
  });
  if (const orbax::CheckpointLeaf* table = find("params/token_embedder.embedding"); table && table->shape.size() == 2)
    layout_.vocab_size = table->shape[0];
  const bool has_head = find("params/decoder.logits_dense.kernel") != nullptr;
  MAXPORT_ASSIGN_OR_RETURN(const auto tied, config_->tied_head(has_head));
  if (tied.tied == has_head)
    return fail(ErrorKind::kInvalidArgument, "{} says that the output head is {}, but the checkpoint has {} head",
                tied.source, tied.tied ? "tied to the embedding" : "a weight of its own", has_head ? "a" : "no");
  layout_.head = has_head ? models::HeadPolicy::kUntie : models::HeadPolicy::kTie;
  return {};
}

void CheckpointSource::match_leaf(const plan::Leaf& leaf, const std::string& name) {
  const orbax::CheckpointLeaf* stored = find(name);
  arrays_.push_back(nullptr);
  stored_leaves_.push_back(stored != nullptr && stored->array && stored->shape == leaf.shape ? stored : nullptr);
  if (leaf.link_count == 0) return;
  if (stored == nullptr || !stored->array)
    mismatches_.missing.push_back({name, leaf.shape});
  else if (stored->shape != leaf.shape)
    mismatches_.misshapen.push_back({name, stored->shape, leaf.shape});
  else
    arrays_.back() = &*stored->array;
}

void CheckpointSource::find_left_over(const std::set<std::string>& used) {
  size_t towers = 0;
  for (const maxtext::CanonicalLeaf& leaf : tree_.parameters) {
    if (used.contains(leaf.name)) continue;
    const bool vision = leaf.name.starts_with("params/vision_encoder."), audio = leaf.name.starts_with("params/audio_encoder.");
    if ((!layout_.use_multimodal && (vision || audio)) || (!layout_.use_audio && audio))
      ++towers;
    else
      mismatches_.left_over.push_back(leaf.name);
  }
  if (towers > 0) notes_.push_back(fmt::format("{} parameters for pictures and sound are left out: use_multimodal or use_audio is false", towers));
}

Result<> CheckpointSource::match_leaves() {
  std::set<std::string> used;
  for (const plan::Leaf& leaf : plan_.leaves) {
    const std::string name = (tree_.collections_known ? leaf.collection : "params") + "/" + leaf.path;
    match_leaf(leaf, name);
    used.insert(name);
  }
  find_left_over(used);
  return {};
}

Result<> CheckpointSource::refuse_mismatches() const {
  std::vector<std::string> misshapen, missing;
  for (const LeafMismatches::Missing& leaf : mismatches_.missing)
    missing.push_back(fmt::format("{} {}", leaf.name, shape_text(leaf.planned)));
  for (const LeafMismatches::Misshapen& leaf : mismatches_.misshapen)
    misshapen.push_back(fmt::format("{}: the checkpoint has {}, the configuration means {}", leaf.name, shape_text(leaf.stored),
                                    shape_text(leaf.planned)));
  const std::vector<std::string>& left_over = mismatches_.left_over;
  std::string text;
  if (!misshapen.empty()) text += fmt::format("\n{} parameters have another shape:{}", misshapen.size(), list(misshapen));
  if (!missing.empty()) text += fmt::format("\n{} parameters are missing:{}", missing.size(), list(missing));
  if (!left_over.empty()) text += fmt::format("\n{} parameters have no place in the model:{}", left_over.size(), list(left_over));
  if (text.empty()) return {};
  return fail(ErrorKind::kInvalidArgument, "the checkpoint is not of the model that {} describes:{}", printable(config_source_), text);
}

}  // namespace maxport::convert
