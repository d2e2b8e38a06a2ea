// Dense decoders of transformers: modeling_llama, modeling_mistral, modeling_qwen2, modeling_qwen3 (and the text part
// of modeling_qwen3_vl, whose three rotary axes are one for text), modeling_gemma2, modeling_gemma3, modeling_olmo3.
#include "forward/huggingface/families.h"

namespace maxport::forward {
namespace {

/// Models with a plain switch for biases of attention and feed-forward.
Result<HuggingfaceTraits> with_biases(const huggingface::ConfigRoles& config, HuggingfaceTraits traits) {
  MAXPORT_ASSIGN_OR_RETURN(traits.bias_qkv, config.boolean_or("attention_bias", false));
  MAXPORT_ASSIGN_OR_RETURN(traits.bias_mlp, config.boolean_or("mlp_bias", false));
  traits.bias_out = traits.bias_qkv;
  return traits;
}

HuggingfaceTraits gemma_traits() {
  HuggingfaceTraits traits;
  traits.norm_offset = 1;
  traits.scaled_embedding = true;
  traits.norm_after_attention = "post_attention_layernorm";
  traits.norm_before_mlp = "pre_feedforward_layernorm";
  traits.norm_after_mlp = "post_feedforward_layernorm";
  traits.query_pre_attn_scalar = true;
  return traits;
}

/// Models whose window, if any, is in every layer.
Result<std::vector<std::string>> sliding_everywhere(const huggingface::ConfigRoles& config) {
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layers, config.integer("num_hidden_layers"));
  return std::vector<std::string>(static_cast<size_t>(layers),
                                  config.has("sliding_window") ? "sliding_attention" : "full_attention");
}

/// Models with use_sliding_window: from max_window_layers on, if at all.
Result<std::vector<std::string>> sliding_above(const huggingface::ConfigRoles& config) {
  MAXPORT_ASSIGN_OR_RETURN(std::vector<std::string> types, config.layer_types());
  MAXPORT_ASSIGN_OR_RETURN(const bool slides, config.boolean_or("use_sliding_window", false));
  if (!slides || !config.has("sliding_window")) return std::vector<std::string>{};
  if (!types.empty()) return types;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layers, config.integer("num_hidden_layers"));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t first, config.integer_or("max_window_layers", 28));
  for (int64_t i = 0; i < layers; ++i) types.push_back(i >= first ? "sliding_attention" : "full_attention");
  return types;
}

}  // namespace

Result<std::unique_ptr<Decoder>> huggingface_llama(HuggingfaceModel model) {
  MAXPORT_ASSIGN_OR_RETURN(const HuggingfaceTraits traits, with_biases(*model.config, {}));
  return make_huggingface<HuggingfaceDecoder>(std::move(model), traits);
}

Result<std::unique_ptr<Decoder>> huggingface_mistral(HuggingfaceModel model) {
  MAXPORT_ASSIGN_OR_RETURN(auto types, sliding_everywhere(*model.config));
  return make_huggingface<HuggingfaceDecoder>(std::move(model), {}, std::move(types));
}

Result<std::unique_ptr<Decoder>> huggingface_qwen2(HuggingfaceModel model) {
  HuggingfaceTraits traits;
  traits.bias_qkv = true;
  MAXPORT_ASSIGN_OR_RETURN(auto types, sliding_above(*model.config));
  return make_huggingface<HuggingfaceDecoder>(std::move(model), traits, std::move(types));
}

Result<std::unique_ptr<Decoder>> huggingface_qwen3(HuggingfaceModel model) {
  MAXPORT_ASSIGN_OR_RETURN(HuggingfaceTraits traits, with_biases(*model.config, {}));
  traits.query_norm = QueryNorm::kHead;
  traits.bias_mlp = false;
  MAXPORT_ASSIGN_OR_RETURN(auto types, sliding_above(*model.config));
  return make_huggingface<HuggingfaceDecoder>(std::move(model), traits, std::move(types));
}

Result<std::unique_ptr<Decoder>> huggingface_gemma2(HuggingfaceModel model) {
  MAXPORT_ASSIGN_OR_RETURN(auto types, layer_types_or_period(*model.config, 2));
  return make_huggingface<HuggingfaceDecoder>(std::move(model), gemma_traits(), std::move(types));
}

Result<std::unique_ptr<Decoder>> huggingface_gemma3(HuggingfaceModel model) {
  HuggingfaceTraits traits = gemma_traits();
  traits.query_norm = QueryNorm::kHead;
  traits.rope_by_layer_type = true;
  traits.maxtext_rounds_scale = true;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t period, model.config->integer_or("sliding_window_pattern", 6));
  MAXPORT_ASSIGN_OR_RETURN(auto types, layer_types_or_period(*model.config, std::max<int64_t>(period, 1)));
  return make_huggingface<HuggingfaceDecoder>(std::move(model), traits, std::move(types));
}

Result<std::unique_ptr<Decoder>> huggingface_olmo3(HuggingfaceModel model) {
  MAXPORT_ASSIGN_OR_RETURN(HuggingfaceTraits traits, with_biases(*model.config, {}));
  traits.norm_before_attention = {};
  traits.norm_after_attention = "post_attention_layernorm";
  traits.norm_before_mlp = {};
  traits.norm_after_mlp = "post_feedforward_layernorm";
  traits.query_norm = QueryNorm::kAllHeads;
  traits.bias_mlp = false;
  traits.rope_by_layer_type = true;
  MAXPORT_ASSIGN_OR_RETURN(auto types, layer_types_or_period(*model.config, 4));
  return make_huggingface<HuggingfaceDecoder>(std::move(model), traits, std::move(types));
}

}  // namespace maxport::forward
