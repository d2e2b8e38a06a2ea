#include "maxtext/derived_settings.h"

#include <algorithm>
#include <cmath>

#include "maxtext/known_settings.h"

namespace maxport::maxtext {
namespace {

using huggingface::ConfigRoles;

constexpr FamilyFacts kFamilies[] = {
    {.family = "llama", .decoder_block = "llama2", .rope = RopeStyle::kLlama},
    {.family = "mistral", .decoder_block = "mistral"},
    {.family = "mixtral", .decoder_block = "mixtral", .moe_decoder_block = "mixtral", .experts = ExpertStyle::kMixtral},
    {.family = "qwen2.5", .decoder_block = "qwen2", .attention_bias = true},
    {.family = "qwen3", .decoder_block = "qwen3", .use_qk_norm = true},
    {.family = "qwen3-moe", .decoder_block = "qwen3_moe", .experts = ExpertStyle::kQwen, .use_qk_norm = true},
    {.family = "qwen3-next", .decoder_block = "qwen3_next", .experts = ExpertStyle::kQwen, .layer_cycle = 4},
    {.family = "qwen3.5", .decoder_block = "qwen3_5", .experts = ExpertStyle::kQwen, .layer_cycle = 4,
     .vision_encoder_block = "qwen3_5"},
    {.family = "qwen3-vl", .decoder_block = "qwen3", .moe_decoder_block = "qwen3_moe", .experts = ExpertStyle::kQwen,
     .use_qk_norm = true, .vision_encoder_block = "qwen3_vl"},
    {.family = "qwen3-omni", .decoder_block = "qwen3_moe", .experts = ExpertStyle::kQwen, .use_qk_norm = true,
     .vision_encoder_block = "qwen3_omni"},
    {.family = "weaver", .decoder_block = "qwen3", .use_qk_norm = true, .vision_encoder_block = "qwen3_vl"},
    {.family = "gemma2", .decoder_block = "gemma2", .scaled_embedding = true, .post_norms = true, .sliding_window = true},
    {.family = "gemma3", .decoder_block = "gemma3", .rope = RopeStyle::kLocalGlobal, .scaled_embedding = true,
     .post_norms = true, .sliding_window = true, .vision_encoder_block = "gemma3", .needs_name = "gemma3"},
    {.family = "gemma4", .decoder_block = "gemma4", .rope = RopeStyle::kGemma4, .experts = ExpertStyle::kGemma4,
     .scaled_embedding = true, .post_norms = true, .sliding_window = true, .vision_encoder_block = "gemma4",
     .needs_name = "gemma4"},
    {.family = "gemma4-small", .decoder_block = "gemma4_small", .rope = RopeStyle::kGemma4, .scaled_embedding = true,
     .post_norms = true, .sliding_window = true, .vision_encoder_block = "gemma4", .needs_name = "gemma4-e"},
    {.family = "gpt-oss", .decoder_block = "gpt_oss", .experts = ExpertStyle::kGptOss, .attention_bias = true,
     .sliding_window = true, .layer_cycle = 2},
    {.family = "deepseek2", .decoder_block = "deepseek", .rope = RopeStyle::kInterleaved,
     .experts = ExpertStyle::kDeepseek},
    {.family = "deepseek3", .decoder_block = "deepseek", .rope = RopeStyle::kInterleaved,
     .experts = ExpertStyle::kDeepseek, .needs_name = "deepseek3"},
    {.family = "deepseek3.2", .decoder_block = "deepseek", .rope = RopeStyle::kInterleaved,
     .experts = ExpertStyle::kDeepseek, .needs_name = "deepseek3"},
    {.family = "deepseek4", .decoder_block = "deepseek4", .rope = RopeStyle::kCompressed,
     .experts = ExpertStyle::kDeepseek4, .sliding_window = true, .needs_name = "deepseek4"},
    {.family = "olmo3", .decoder_block = "olmo3", .use_qk_norm = true, .sliding_window = true, .layer_cycle = 4,
     .needs_name = "olmo3"},
};

/// MaxText's name of the gate's activation. Its gelu is the one with tanh.
std::optional<std::string_view> activation_name(std::string_view name) {
  if (name == "silu" || name == "swish") return "silu";
  if (name == "gelu_pytorch_tanh" || name == "gelu" || name == "gelu_new" || name == "gelu_fast") return "gelu";
  if (name == "relu") return "relu";
  return std::nullopt;
}

Result<> derive_activation(SettingsBuilder& builder) {
  if (builder.facts.experts == ExpertStyle::kGptOss) {
    builder.set("mlp_activations", Json::array({"sigmoid", "linear"}));
    return {};
  }
  MAXPORT_ASSIGN_OR_RETURN(auto name, builder.config.optional_text("hidden_activation"));
  const std::string found = name.value_or("silu");
  const auto known = activation_name(found);
  if (!known) {
    builder.note(fmt::format("MaxText has no activation called {}; mlp_activations is left out", printable(found)));
    return {};
  }
  if (found == "gelu") builder.note("the model's gelu is the exact one; MaxText computes it with tanh");
  builder.set("mlp_activations", Json::array({*known, "linear"}));
  return {};
}

bool has_experts(const SettingsBuilder& builder) {
  const auto count = builder.config.optional_integer("num_experts");
  return builder.facts.experts != ExpertStyle::kDense && count && count->value_or(0) > 0;
}

/// Layers as MaxText counts them: gemma2's are pairs of a local and a global one.
Result<int64_t> decoder_layers(const SettingsBuilder& builder) {
  MAXPORT_ASSIGN_OR_RETURN(int64_t layers, builder.config.integer("num_hidden_layers"));
  if (builder.facts.family != "gemma2") return layers;
  if (layers % 2 != 0)
    return fail(ErrorKind::kUnsupported,
                "the model has {} layers; MaxText's gemma2 holds them in pairs of a local and a global one", layers);
  return layers / 2;
}

/// Width of the dense network. Where every layer has experts MaxText wants their width here too.
Result<std::optional<int64_t>> dense_width(const SettingsBuilder& builder) {
  const bool all_experts = builder.facts.experts == ExpertStyle::kQwen || builder.facts.experts == ExpertStyle::kDeepseek4;
  return builder.config.optional_integer(all_experts && has_experts(builder) ? "moe_intermediate_size"
                                                                               : "intermediate_size");
}

Result<> derive_sizes(SettingsBuilder& builder) {
  MAXPORT_RETURN_IF_ERROR(builder.copy("base_emb_dim", "hidden_size"));
  MAXPORT_RETURN_IF_ERROR(builder.copy("base_num_query_heads", "num_attention_heads"));
  MAXPORT_RETURN_IF_ERROR(builder.copy("base_num_kv_heads", "num_key_value_heads"));
  // Latent attention has head sizes of its own.
  if (!builder.config.has("kv_lora_rank")) MAXPORT_RETURN_IF_ERROR(builder.copy("head_dim", "head_dim"));
  MAXPORT_ASSIGN_OR_RETURN(int64_t layers, decoder_layers(builder));
  builder.set("base_num_decoder_layers", layers);
  MAXPORT_ASSIGN_OR_RETURN(auto width, dense_width(builder));
  if (width) builder.set("base_mlp_dim", *width);
  MAXPORT_ASSIGN_OR_RETURN(int64_t vocabulary, builder.config.integer("vocab_size"));
  builder.set("vocab_size", builder.request.vocab_size.value_or(vocabulary));
  return {};
}

Result<> derive_output(SettingsBuilder& builder) {
  builder.set("logits_via_embedding", builder.request.head_tied);
  builder.set("normalize_embedding_logits", builder.facts.scaled_embedding);
  for (const auto& [key, role] : {std::pair{"final_logits_soft_cap", "final_logit_softcapping"},
                                  std::pair{"attn_logits_soft_cap", "attn_logit_softcapping"}}) {
    MAXPORT_ASSIGN_OR_RETURN(auto cap, builder.config.optional_number(role));
    if (cap) builder.set(key, *cap);
  }
  return {};
}

/// gemma4's global layers: stated directly, or layer by layer.
Result<std::optional<int64_t>> global_size(const ConfigRoles& config, std::string_view stated, std::string_view role) {
  MAXPORT_ASSIGN_OR_RETURN(auto direct, config.optional_integer(stated));
  if (direct) return direct;
  const Json& section = config.section_json();
  const auto layers = section.find("per_layer_config");
  if (layers == section.end() || !layers->is_object()) return std::nullopt;
  for (const auto& [layer, sizes] : layers->items()) {
    const auto size = sizes.is_object() ? sizes.find(role) : sizes.end();
    if (size != sizes.end() && size->is_number_integer()) return size->get<int64_t>();
  }
  return std::nullopt;
}

Result<> derive_gemma4(SettingsBuilder& builder) {
  MAXPORT_ASSIGN_OR_RETURN(auto head, global_size(builder.config, "global_head_dim", "head_dim"));
  MAXPORT_ASSIGN_OR_RETURN(auto heads,
                           global_size(builder.config, "num_global_key_value_heads", "num_key_value_heads"));
  if (head) builder.set("global_head_dim", *head);
  if (heads) builder.set("global_num_kv_heads", *heads);
  builder.set("v_norm_with_scale", false);
  MAXPORT_ASSIGN_OR_RETURN(bool shared, builder.config.boolean_or("attention_k_eq_v", false));
  if (builder.facts.family == "gemma4") {
    builder.set("share_kv_projections", shared);
    return {};
  }
  MAXPORT_RETURN_IF_ERROR(builder.copy("hidden_size_per_layer_input", "hidden_size_per_layer_input"));
  MAXPORT_RETURN_IF_ERROR(builder.copy("vocab_size_per_layer_input", "vocab_size_per_layer_input"));
  MAXPORT_RETURN_IF_ERROR(builder.copy("num_kv_shared_layers", "num_kv_shared_layers"));
  MAXPORT_ASSIGN_OR_RETURN(bool wide, builder.config.boolean_or("use_double_wide_mlp", false));
  builder.set("use_double_wide_mlp", wide);
  return {};
}

void set_indexer(SettingsBuilder& builder) {
  builder.set("use_indexer", true);
  // MaxText refuses to choose a kernel by itself here; this one runs everywhere.
  builder.set("attention", "dot_product");
}

Result<> derive_latent_attention(SettingsBuilder& builder) {
  builder.set("attention_type", "mla");
  MAXPORT_ASSIGN_OR_RETURN(int64_t rank, builder.config.integer_or("q_lora_rank", 0));
  builder.set("q_lora_rank", rank);
  for (const char* key : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
    MAXPORT_RETURN_IF_ERROR(builder.copy(key, key));
  if (builder.facts.family != "deepseek3.2") return {};
  set_indexer(builder);
  MAXPORT_RETURN_IF_ERROR(builder.copy("indexer_n_heads", "index_n_heads"));
  MAXPORT_RETURN_IF_ERROR(builder.copy("indexer_head_dim", "index_head_dim"));
  return builder.copy("indexer_topk", "index_topk");
}

Result<> derive_compressed_attention(SettingsBuilder& builder) {
  builder.set("attention_type", "compressed");
  set_indexer(builder);
  const std::pair<std::string_view, std::string_view> copies[] = {
      {"q_lora_rank", "q_lora_rank"},       {"qk_rope_head_dim", "qk_rope_head_dim"}, {"o_groups", "o_groups"},
      {"o_lora_rank", "o_lora_rank"},       {"indexer_n_heads", "index_n_heads"},     {"indexer_head_dim", "index_head_dim"},
      {"indexer_topk", "index_topk"},       {"mhc_expansion_rate", "hc_mult"},        {"first_num_hash_layers", "num_hash_layers"},
      {"sinkhorn_iterations", "hc_sinkhorn_iters"}};
  for (const auto& [key, role] : copies) MAXPORT_RETURN_IF_ERROR(builder.copy(key, role));
  if (builder.config.has("compress_ratios")) {
    MAXPORT_ASSIGN_OR_RETURN(auto ratios, builder.config.integers("compress_ratios"));
    builder.set("compress_ratios", ratios);
  }
  return {};
}

}  // namespace

const FamilyFacts* family_facts(std::string_view family) {
  const auto found = std::ranges::find(kFamilies, family, &FamilyFacts::family);
  return found == std::end(kFamilies) ? nullptr : &*found;
}

void SettingsBuilder::set(std::string_view key, Json value) {
  const auto known = known_settings().find(key);
  MAXPORT_CHECK(known != known_settings().end());
  if (known->second.type == SettingType::kInteger && value.is_number_float()) {
    const double exact = value.get<double>();
    value = static_cast<int64_t>(std::llround(exact));
    if (value != exact) note(fmt::format("{} is {} in the model; MaxText takes integers only", key, exact));
  }
  if (known->second.type == SettingType::kFloat && value.is_number()) value = value.get<double>();
  out[std::string(key)] = value;
}

Result<> SettingsBuilder::copy(std::string_view key, std::string_view role) { return copy_from(config, key, role); }

Result<> SettingsBuilder::copy_from(const ConfigRoles& section, std::string_view key, std::string_view role) {
  if (known_settings().find(key)->second.type == SettingType::kFloat) {
    MAXPORT_ASSIGN_OR_RETURN(auto number, section.optional_number(role));
    if (number) set(key, *number);
    return {};
  }
  MAXPORT_ASSIGN_OR_RETURN(auto integer, section.optional_integer(role));
  if (integer) set(key, *integer);
  return {};
}

Result<> derive_decoder(SettingsBuilder& builder) {
  const FamilyFacts& facts = builder.facts;
  const bool moe_block = has_experts(builder) && !facts.moe_decoder_block.empty();
  builder.set("decoder_block", moe_block ? facts.moe_decoder_block : facts.decoder_block);
  MAXPORT_RETURN_IF_ERROR(derive_sizes(builder));
  MAXPORT_RETURN_IF_ERROR(derive_activation(builder));
  MAXPORT_ASSIGN_OR_RETURN(double epsilon, builder.config.number("rms_norm_eps"));
  builder.set("normalization_layer_epsilon", epsilon);
  MAXPORT_RETURN_IF_ERROR(derive_output(builder));
  if (facts.post_norms) {
    builder.set("use_post_attn_norm", true);
    builder.set("use_post_ffw_norm", true);
  }
  MAXPORT_ASSIGN_OR_RETURN(int64_t interval, builder.config.integer_or("full_attention_interval", facts.layer_cycle));
  if (facts.layer_cycle > 0) builder.set("inhomogeneous_layer_cycle_interval", interval);
  return {};
}

Result<> derive_attention(SettingsBuilder& builder) {
  const FamilyFacts& facts = builder.facts;
  if (facts.use_qk_norm) builder.set("use_qk_norm", true);
  if (facts.attention_bias) builder.set("attention_bias", true);
  if (facts.experts == ExpertStyle::kGptOss) builder.set("attention_sink", true);
  if (facts.sliding_window) MAXPORT_RETURN_IF_ERROR(builder.copy("sliding_window_size", "sliding_window"));
  MAXPORT_ASSIGN_OR_RETURN(auto window, builder.config.optional_integer("sliding_window"));
  if (facts.family == "mistral" && window)
    builder.note(fmt::format("the model attends to the last {} tokens; MaxText's mistral attends to all", *window));
  if (facts.rope == RopeStyle::kGemma4) MAXPORT_RETURN_IF_ERROR(derive_gemma4(builder));
  if (facts.experts == ExpertStyle::kDeepseek) MAXPORT_RETURN_IF_ERROR(derive_latent_attention(builder));
  if (facts.experts == ExpertStyle::kDeepseek4) MAXPORT_RETURN_IF_ERROR(derive_compressed_attention(builder));
  return {};
}

Result<> derive_linear_attention(SettingsBuilder& builder) {
  for (const auto& [key, role] :
       {std::pair{"gdn_conv_kernel_dim", "linear_conv_kernel_dim"}, std::pair{"gdn_key_head_dim", "linear_key_head_dim"},
        std::pair{"gdn_value_head_dim", "linear_value_head_dim"}, std::pair{"gdn_num_key_heads", "linear_num_key_heads"},
        std::pair{"gdn_num_value_heads", "linear_num_value_heads"}})
    MAXPORT_RETURN_IF_ERROR(builder.copy(key, role));
  return {};
}

}  // namespace maxport::maxtext
