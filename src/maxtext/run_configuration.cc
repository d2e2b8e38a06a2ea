#include "maxtext/run_configuration.h"

#include <algorithm>

#include "maxtext/catalog.h"
#include "maxtext/derived_settings.h"
#include "maxtext/known_settings.h"
#include "maxtext/yaml_value.h"

namespace maxport::maxtext {
namespace {

constexpr std::string_view kMainFile = "maxtext.yml";

// Settings of model files that say how to train or to quantize, not what the model is.
constexpr std::string_view kTrainingOnly[] = {
    "enable_dropout", "load_balance_loss_weight", "routed_bias_update_rate", "log_moe_bias_norms", "tokenizer_type",
    "float32_gate_logits", "gdn_chunk_size", "image_placeholder", "num_conv_layers_for_audio", "max_timescale_for_audio",
    "max_sample_len_for_audio"};

/// Names that MaxText's own list of models has.
bool is_maxtext_name(std::string_view name) { return name != "qwen3-coder-480b-a35b"; }

/// Where MaxText has several names with different arithmetic, the one whose arithmetic is the model's.
Result<std::string> family_name(const RunConfigurationRequest& request, std::vector<std::string>& notes) {
  const auto& config = request.config;
  const std::string_view family = request.family;
  if (family == "gemma3") {
    MAXPORT_ASSIGN_OR_RETURN(int64_t head, config.integer("head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(int64_t heads, config.integer("num_attention_heads"));
    MAXPORT_ASSIGN_OR_RETURN(int64_t width, config.integer("hidden_size"));
    MAXPORT_ASSIGN_OR_RETURN(double scalar, config.number_or("query_pre_attn_scalar", static_cast<double>(head)));
    if (scalar == static_cast<double>(head)) return "gemma3-4b";
    if (scalar != static_cast<double>(width / heads))
      notes.push_back(fmt::format("the model scales queries by {}^-1/2; MaxText's gemma3 by {}^-1/2", scalar, width / heads));
    return "gemma3-27b";
  }
  if (family == "gemma4") {
    MAXPORT_ASSIGN_OR_RETURN(int64_t experts, config.integer_or("num_experts", 0));
    return experts > 0 ? "gemma4-26b" : "gemma4-31b";
  }
  if (family == "gemma4-small") {
    MAXPORT_ASSIGN_OR_RETURN(auto types, config.layer_types());
    return types.size() > 4 && types[4] == "full_attention" ? "gemma4-e2b" : "gemma4-e4b";
  }
  if (family == "qwen3-vl") {
    MAXPORT_ASSIGN_OR_RETURN(int64_t experts, config.integer_or("num_experts", 0));
    return experts > 0 ? "qwen3-vl-30b-a3b" : "qwen3-vl-2b";
  }
  for (std::string_view name : catalog_names())
    if (catalog_family(name) == family) return std::string(name);
  return fail(ErrorKind::kInternal, "no model of the family {} is in the catalog", family);
}

/// Whether MaxText computes the same under both names of one family.
bool same_arithmetic(std::string_view family, std::string_view a, std::string_view b) {
  if (family == "gemma3") return (a == "gemma3-27b") == (b == "gemma3-27b");
  return family != "gemma4-small" || a == b;
}

/// With pictures, MaxText chooses code by the model's name in every family that has them.
bool needs_name(const RunConfigurationRequest& request, const FamilyFacts& facts) {
  return !facts.needs_name.empty() || (request.use_multimodal && !facts.vision_encoder_block.empty());
}

bool agrees(const OrderedJson& derived, const Json& model_file) {
  for (const auto& [key, value] : model_file.items())
    if (derived.contains(key) && Json(derived.at(key)) != value) return false;
  return true;
}

/// The entry to name in the configuration: the model's own, if it is one that MaxText knows.
Result<const CatalogEntry*> own_entry(const RunConfigurationRequest& request) {
  if (request.model_name && is_maxtext_name(*request.model_name)) {
    auto named = find_model(*request.model_name);
    if (named && (*named)->family == request.family) return *named;
  }
  const CatalogEntry* found = request.found.value_or(nullptr);
  if (!request.found) {
    MAXPORT_ASSIGN_OR_RETURN(found, find_by_config(request.config));
  }
  return found && found->family == request.family ? found : nullptr;
}

std::string yaml_lines(const OrderedJson& settings) {
  std::string text;
  for (const auto& [key, value] : settings.items()) text += key + ": " + yaml_text(Json(value)) + "\n";
  return text;
}

std::string main_text(const RunConfigurationRequest& request, const RunConfiguration& configuration) {
  std::string text =
      "# What MaxText needs to know about this model. Use it in place of base.yml:\n"
      "#   python -m maxtext.trainers.pre_train.train maxtext.yml load_parameters_path=.../0/items run_name=...\n"
      "# Settings that are not here have MaxText's defaults.\n";
  for (const std::string& note : configuration.notes) text += "# Note: " + note + ".\n";
  text += "base_config: base.yml\n";
  if (configuration.model_name) text += "model_name: " + yaml_text(*configuration.model_name) + "\n";
  if (request.tokenizer_path)
    text += "tokenizer_type: huggingface\ntokenizer_path: " + yaml_text(*request.tokenizer_path) + "\n";
  return text + yaml_lines(configuration.settings);
}

/// Takes the place of MaxText's own model file, whose sizes are another model's.
std::string model_file_text(const OrderedJson& settings, const CatalogEntry& entry) {
  OrderedJson all = settings;
  for (std::string_view key : kTrainingOnly)
    if (entry.settings.contains(key) && !all.contains(key)) all[std::string(key)] = entry.settings.at(std::string(key));
  return fmt::format(
             "# MaxText takes the settings of a model called {} from here instead of from its own file, whose sizes are\n"
             "# another model's. Keep it in the folder models beside {}.\n",
             entry.name, kMainFile) +
         yaml_lines(all);
}

void set_layout(SettingsBuilder& builder) {
  const RunConfigurationRequest& request = builder.request;
  builder.set("scan_layers", request.scan_layers);
  if (request.param_scan_axis != 1) builder.set("param_scan_axis", request.param_scan_axis);
  if (request.mtp_num_layers > 0) builder.set("mtp_num_layers", request.mtp_num_layers);
  if (!request.float8_weights) return;
  builder.set("weight_dtype", "float8_e4m3fn");
  builder.set("weight_block_size", request.weight_block_size);
  builder.set("dtype", "bfloat16");
  builder.set("unquantized_modules", Json::array({"token_embedder", "logits_dense", "gate", "shared_expert_gate", "conv1d",
                                                  "in_proj_ba", "A_log", "dt_bias", "norm"}));
}

}  // namespace

Result<OrderedJson> derive_settings(const RunConfigurationRequest& request, std::vector<std::string>& notes) {
  const FamilyFacts* facts = family_facts(request.family);
  if (!facts)
    return fail(ErrorKind::kUnsupported, "no MaxText decoder is known for the family {}", printable(request.family));
  SettingsBuilder builder(request, *facts, notes);
  MAXPORT_RETURN_IF_ERROR(derive_decoder(builder));
  MAXPORT_RETURN_IF_ERROR(derive_attention(builder));
  MAXPORT_RETURN_IF_ERROR(derive_linear_attention(builder));
  MAXPORT_RETURN_IF_ERROR(derive_experts(builder));
  MAXPORT_RETURN_IF_ERROR(derive_rope(builder));
  MAXPORT_RETURN_IF_ERROR(derive_vision(builder));
  MAXPORT_RETURN_IF_ERROR(derive_audio(builder));
  set_layout(builder);
  return std::move(builder.out);
}

Result<RunConfiguration> make_run_configuration(const RunConfigurationRequest& request) {
  RunConfiguration out;
  MAXPORT_ASSIGN_OR_RETURN(out.settings, derive_settings(request, out.notes));
  const FamilyFacts& facts = *family_facts(request.family);
  MAXPORT_ASSIGN_OR_RETURN(const CatalogEntry* entry, own_entry(request));
  const bool own_file = entry && agrees(out.settings, entry->settings);
  if (!own_file && needs_name(request, facts)) {
    MAXPORT_ASSIGN_OR_RETURN(std::string name, family_name(request, out.notes));
    if (!entry || !same_arithmetic(request.family, entry->name, name)) {
      MAXPORT_ASSIGN_OR_RETURN(entry, find_model(name));
    }
  }
  if (own_file || needs_name(request, facts)) out.model_name = entry->name;
  out.files.push_back({std::string(kMainFile), main_text(request, out)});
  if (out.model_name && !own_file)
    out.files.push_back({"models/" + *out.model_name + ".yml", model_file_text(out.settings, *entry)});
  return out;
}

std::vector<SettingMismatch> contradicting_settings(const Settings& settings, const OrderedJson& derived) {
  std::vector<SettingMismatch> out;
  for (const auto& [key, value] : derived.items()) {
    const Setting* setting = settings.find(key);
    if (!setting || !settings.given(key) || setting->value == Json(value)) continue;
    out.push_back({key, setting->value.dump(), Json(value).dump(), setting->source});
  }
  return out;
}

}  // namespace maxport::maxtext
