#include "maxtext/catalog.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>

#include "maxtext/embedded.h"
#include "maxtext/spelling.h"

namespace maxport::maxtext {
namespace {

using huggingface::ConfigRoles;

/// One lazily read entry. `entry` never moves once it is there.
struct Slot {
  std::once_flag once;
  std::unique_ptr<CatalogEntry> entry;
};

const CatalogEntry& read_entry(size_t index);

std::unique_ptr<CatalogEntry> parse_entry(const CatalogFile& file) {
  auto json = parse_json(file.text, "the catalog entry of " + std::string(file.name));
  MAXPORT_CHECK(json.has_value());
  auto entry = std::make_unique<CatalogEntry>();
  entry->name = json->at("name").get<std::string>();
  entry->family = json->at("family").get<std::string>();
  entry->hf_id = json->at("hf_id").get<std::string>();
  if (json->contains("like")) {
    const auto like = json->at("like").get<std::string>();
    const auto files = catalog_files();
    const auto other = std::ranges::find(files, like, &CatalogFile::name);
    MAXPORT_CHECK(other != files.end() && other->name != file.name);
    const CatalogEntry& twin = read_entry(static_cast<size_t>(other - files.begin()));
    entry->hf_config = twin.hf_config;
    entry->settings = twin.settings;
  } else {
    entry->hf_config = std::move(json->at("hf_config"));
    entry->settings = std::move(json->at("settings"));
  }
  return entry;
}

const CatalogEntry& read_entry(size_t index) {
  static std::vector<Slot> slots(catalog_files().size());
  Slot& slot = slots[index];
  std::call_once(slot.once, [&] { slot.entry = parse_entry(catalog_files()[index]); });
  return *slot.entry;
}

std::vector<std::string_view> distinct(std::string_view CatalogFile::*member) {
  std::vector<std::string_view> out;
  for (const CatalogFile& file : catalog_files())
    if (std::ranges::find(out, file.*member) == out.end()) out.push_back(file.*member);
  return out;
}

/// Which configurations have a field: those of the language model, of the vision part, of the audio part.
enum class Part { kText, kVision, kAudio };

struct Field {
  Part part;
  std::string_view role;
  bool decides_shapes;
  bool dense_only = false;  ///< left alone where every layer has experts: published values vary and nothing uses them
};

constexpr Field kFields[] = {
    {Part::kText, "hidden_size", true},
    {Part::kText, "num_hidden_layers", true},
    {Part::kText, "num_attention_heads", true},
    {Part::kText, "num_key_value_heads", true},
    {Part::kText, "head_dim", true},
    {Part::kText, "intermediate_size", true, true},
    {Part::kText, "vocab_size", true},
    {Part::kText, "num_experts", true},
    {Part::kText, "moe_intermediate_size", true},
    {Part::kText, "shared_expert_intermediate_size", true},
    {Part::kText, "n_shared_experts", true},
    {Part::kText, "first_k_dense_replace", true},
    {Part::kText, "q_lora_rank", true},
    {Part::kText, "kv_lora_rank", true},
    {Part::kText, "qk_nope_head_dim", true},
    {Part::kText, "qk_rope_head_dim", true},
    {Part::kText, "v_head_dim", true},
    {Part::kText, "index_n_heads", true},
    {Part::kText, "index_head_dim", true},
    {Part::kText, "o_groups", true},
    {Part::kText, "o_lora_rank", true},
    {Part::kText, "hc_mult", true},
    {Part::kText, "num_hash_layers", true},
    {Part::kText, "linear_conv_kernel_dim", true},
    {Part::kText, "linear_key_head_dim", true},
    {Part::kText, "linear_value_head_dim", true},
    {Part::kText, "linear_num_key_heads", true},
    {Part::kText, "linear_num_value_heads", true},
    {Part::kText, "hidden_size_per_layer_input", true},
    {Part::kText, "num_kv_shared_layers", true},
    {Part::kText, "global_head_dim", true},
    {Part::kText, "num_global_key_value_heads", true},
    {Part::kText, "attention_bias", true},
    {Part::kText, "tie_word_embeddings", true},
    {Part::kText, "rms_norm_eps", false},
    {Part::kText, "num_experts_per_tok", false},
    {Part::kText, "max_position_embeddings", false},
    {Part::kText, "norm_topk_prob", false},
    {Part::kText, "routed_scaling_factor", false},
    {Part::kText, "query_pre_attn_scalar", false},
    {Part::kText, "attn_logit_softcapping", false},
    {Part::kText, "final_logit_softcapping", false},
    {Part::kVision, "num_hidden_layers", true},
    {Part::kVision, "hidden_size", true},
    {Part::kVision, "intermediate_size", true},
    {Part::kVision, "num_attention_heads", true},
    {Part::kVision, "patch_size", true},
    {Part::kVision, "temporal_patch_size", true},
    {Part::kVision, "out_hidden_size", true},
    {Part::kVision, "num_position_embeddings", true},
    {Part::kVision, "position_embedding_size", true},
    {Part::kVision, "deepstack_visual_indexes", true},
    {Part::kAudio, "d_model", true},
    {Part::kAudio, "encoder_layers", true},
    {Part::kAudio, "encoder_attention_heads", true},
    {Part::kAudio, "encoder_ffn_dim", true},
    {Part::kAudio, "downsample_hidden_size", true},
    {Part::kAudio, "output_dim", true},
};

std::string_view section_of(Part part, bool in_thinker) {
  if (part == Part::kVision) return in_thinker ? "thinker_config.vision_config" : "vision_config";
  return in_thinker ? "thinker_config.audio_config" : "audio_config";
}

/// The value of a role in any spelling, with the defaults that count: nothing when the configuration leaves it open.
Result<std::optional<Json>> value_of(const ConfigRoles& config, std::string_view role) {
  if (role == "deepstack_visual_indexes") {
    if (!config.has(role)) return std::nullopt;
    MAXPORT_ASSIGN_OR_RETURN(auto list, config.integers(role));
    return Json(list);
  }
  if (role == "tie_word_embeddings" || role == "attention_bias" || role == "norm_topk_prob") {
    MAXPORT_ASSIGN_OR_RETURN(auto flag, config.optional_boolean(role));
    return flag ? std::optional<Json>(*flag) : std::nullopt;
  }
  if (role == "head_dim" || role == "num_key_value_heads") {
    // Latent attention has no head size of this kind, though some files state one.
    if (role == "head_dim" && config.has("kv_lora_rank")) return std::nullopt;
    MAXPORT_ASSIGN_OR_RETURN(auto derived, config.optional_integer(role));
    return derived ? std::optional<Json>(*derived) : std::nullopt;
  }
  MAXPORT_ASSIGN_OR_RETURN(auto number, config.optional_number(role));
  return number ? std::optional<Json>(*number) : std::nullopt;
}

bool all_layers_have_experts(const ConfigRoles& config) {
  return config.section_json().contains("moe_intermediate_size") && !config.has("first_k_dense_replace") &&
         !config.has("enable_moe_block");
}

bool same_value(std::string_view role, const Json& a, const Json& b) {
  constexpr double kVocabularyPadding = 256;
  if (role == "vocab_size") return std::abs(a.get<double>() - b.get<double>()) < kVocabularyPadding;
  return a == b;
}

/// "gemma3_text" and "gemma3" describe one decoder.
std::string decoder_type(const ConfigRoles& config) {
  std::string type = config.section_model_type();
  if (type.ends_with("_text")) type.resize(type.size() - 5);
  return type;
}

std::string number_text(const Json& value) {
  if (value.is_number_float() && value == std::trunc(value.get<double>()) && std::abs(value.get<double>()) < 1e15)
    return Json(static_cast<int64_t>(value.get<double>())).dump();
  return value.dump();
}

class Comparison {
 public:
  Comparison(const ConfigRoles& config, const ConfigRoles& catalog) : config_(config), catalog_(catalog) {}

  Result<std::vector<ConfigMismatch>> run() {
    compare_types();
    compare_quantization();
    for (const Field& field : kFields) MAXPORT_RETURN_IF_ERROR(compare(field));
    for (std::string_view type : {"full_attention", "sliding_attention"}) MAXPORT_RETURN_IF_ERROR(compare_rope(type));
    return std::move(mismatches_);
  }

 private:
  void compare_types() {
    const std::string here = decoder_type(config_), there = decoder_type(catalog_);
    if (!here.empty() && !there.empty() && here != there)
      add(config_, "model_type", Json(here).dump(), Json(there).dump(), true);
  }

  /// By the stated method alone: whether it can be converted is decided elsewhere.
  void compare_quantization() {
    const auto method = [](const ConfigRoles& config) {
      const Json& root = config.root();
      const auto found = root.find("quantization_config");
      return found != root.end() && found->is_object() ? found->value("quant_method", Json("unnamed")) : Json("none");
    };
    if (method(config_) != method(catalog_))
      add(config_, "quantization_config.quant_method", method(config_).dump(), method(catalog_).dump(), false);
  }

  Result<> compare(const Field& field) {
    if (field.dense_only && all_layers_have_experts(catalog_)) return {};
    if (field.part == Part::kText) return compare_in(config_, catalog_, field);
    const bool in_thinker = catalog_.root().contains("thinker_config");
    const std::string_view path = section_of(field.part, in_thinker);
    MAXPORT_ASSIGN_OR_RETURN(auto here, config_.section(path));
    MAXPORT_ASSIGN_OR_RETURN(auto there, catalog_.section(path));
    if (!here || !there) return {};
    return compare_in(*here, *there, field);
  }

  Result<> compare_in(const ConfigRoles& here, const ConfigRoles& there, const Field& field) {
    MAXPORT_ASSIGN_OR_RETURN(auto ours, value_of(here, field.role));
    MAXPORT_ASSIGN_OR_RETURN(auto theirs, value_of(there, field.role));
    if (ours && theirs && !same_value(field.role, *ours, *theirs))
      add(here, field.role, number_text(*ours), number_text(*theirs), field.decides_shapes);
    return {};
  }

  Result<> compare_rope(std::string_view layer_type) {
    auto here = config_.rope(layer_type);
    auto there = catalog_.rope(layer_type);
    // A configuration without rope, or one whose class default is not known here, has nothing to compare.
    if (!here && here.error().kind() != ErrorKind::kNotFound) return std::unexpected(std::move(here).error());
    if (!here || !there) return {};
    const auto already = [&](std::string_view field) {
      return std::ranges::any_of(mismatches_, [&](const auto& known) { return known.field.ends_with(field); });
    };
    if (here->theta != there->theta && !already("rope_theta"))
      add(config_, "rope_theta", number_text(here->theta), number_text(there->theta), false);
    if (here->type != there->type && !already("rope_type"))
      add(config_, "rope_type", Json(here->type).dump(), Json(there->type).dump(), false);
    return {};
  }

  void add(const ConfigRoles& where, std::string_view role, std::string here, std::string there, bool decides_shapes) {
    std::string field = where.section_path();
    if (!field.empty()) field += '.';
    field += role;
    mismatches_.push_back({std::move(field), std::move(here), std::move(there), decides_shapes});
  }

  const ConfigRoles& config_;
  const ConfigRoles& catalog_;
  std::vector<ConfigMismatch> mismatches_;
};

}  // namespace

std::span<const std::string_view> catalog_names() {
  static const auto names = distinct(&CatalogFile::name);
  return names;
}

std::span<const std::string_view> family_names() {
  static const auto names = distinct(&CatalogFile::family);
  return names;
}

std::string_view catalog_family(std::string_view name) {
  const auto files = catalog_files();
  const auto found = std::ranges::find(files, name, &CatalogFile::name);
  return found == files.end() ? std::string_view() : found->family;
}

Result<const CatalogEntry*> find_model(std::string_view name) {
  const auto names = catalog_names();
  for (size_t i = 0; i < names.size(); ++i)
    if (edit_distance(name, names[i]) == 0 && name.size() == names[i].size()) return &read_entry(i);
  return fail(ErrorKind::kNotFound, "no model is called {}{}", printable(name),
              did_you_mean(nearest_names(name, names)));
}

Result<std::vector<ConfigMismatch>> compare_with_catalog(const ConfigRoles& config, const CatalogEntry& entry) {
  MAXPORT_ASSIGN_OR_RETURN(auto catalog, ConfigRoles::create(entry.hf_config, "the catalog entry of " + entry.name));
  return Comparison(config, catalog).run();
}

Result<std::vector<ConfigMismatch>> check_model_name(const ConfigRoles& config, const CatalogEntry& entry,
                                                     bool override_model_config) {
  MAXPORT_ASSIGN_OR_RETURN(auto mismatches, compare_with_catalog(config, entry));
  if (override_model_config) return mismatches;
  std::string list;
  for (const ConfigMismatch& mismatch : mismatches)
    if (mismatch.decides_shapes)
      list += fmt::format("{}{}: config.json says {}, {} has {}", list.empty() ? "" : "; ", mismatch.field,
                          printable(mismatch.in_config), entry.name, mismatch.in_catalog);
  if (list.empty()) return mismatches;
  return fail(ErrorKind::kInvalidArgument,
              "model_name={} contradicts the source model ({}); leave model_name out, name the right model, or add "
              "override_model_config=true to go by config.json",
              entry.name, list);
}

Result<const CatalogEntry*> find_by_config(const ConfigRoles& config) {
  const CatalogEntry* best = nullptr;
  for (size_t i = 0; i < catalog_names().size(); ++i) {
    const CatalogEntry& entry = read_entry(i);
    MAXPORT_ASSIGN_OR_RETURN(auto mismatches, compare_with_catalog(config, entry));
    if (std::ranges::any_of(mismatches, &ConfigMismatch::decides_shapes)) continue;
    if (mismatches.empty()) return &entry;
    if (!best) best = &entry;
  }
  return best;
}

}  // namespace maxport::maxtext
