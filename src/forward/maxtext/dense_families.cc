// Dense decoder blocks of MaxText: models/llama2.py, mistral.py, qwen2.py, qwen3.py, gemma2.py, gemma3.py, olmo3.py.
#include <cmath>

#include "forward/maxtext/families.h"

namespace maxport::forward {
namespace {

Result<double> inverse_root_of_head(const maxtext::Settings& settings) {
  MAXPORT_ASSIGN_OR_RETURN(const double head_dim, settings.number("head_dim"));
  return 1 / std::sqrt(head_dim);
}

/// A "layer" of MaxText is two layers here, whose parameters end in _local and _global.
class Gemma2Decoder : public MaxtextDecoder {
 public:
  using MaxtextDecoder::MaxtextDecoder;

  Result<> prepare() override {
    MAXPORT_RETURN_IF_ERROR(MaxtextDecoder::prepare());
    layers_ *= 2;
    MAXPORT_ASSIGN_OR_RETURN(post_attention_, settings_.boolean("use_post_attn_norm"));
    MAXPORT_ASSIGN_OR_RETURN(post_mlp_, settings_.boolean("use_post_ffw_norm"));
    return {};
  }

  Result<> layer(int64_t index, const Batch& batch, Matrix& x) override {
    const bool global = index % 2 == 1;
    traits_.attention = global ? "self_attention_global" : "self_attention_local";
    traits_.mlp = global ? "mlp_global" : "mlp_local";
    traits_.norm_before_attention = global ? "pre_self_attention_norm_global" : "pre_self_attention_norm_local";
    traits_.norm_before_mlp = global ? "pre_ffw_norm_global" : "pre_ffw_norm_local";
    if (post_attention_)
      traits_.norm_after_attention = global ? "post_self_attention_norm_global" : "post_self_attention_norm_local";
    if (post_mlp_) traits_.norm_after_mlp = global ? "post_ffw_norm_global" : "post_ffw_norm_local";
    return MaxtextDecoder::layer(index, batch, x);
  }

 protected:
  LayerPlace place(int64_t index) const override {
    if (model_.scanned) return {"decoder.layers", {index / 2}};
    return {fmt::format("decoder.layers_{}", index / 2)};
  }

 private:
  bool post_attention_ = true, post_mlp_ = true;
};

/// The scale that gemma3's layer takes by the model's name.
Result<double> gemma3_query_scale(const maxtext::Settings& settings) {
  const std::string name = settings.model_name().value_or("default");
  if (name == "gemma3-4b" || name == "gemma3-12b") return inverse_root_of_head(settings);
  if (name == "gemma3-27b") {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t width, settings.integer("base_emb_dim"));
    MAXPORT_ASSIGN_OR_RETURN(const int64_t heads, settings.integer("base_num_query_heads"));
    if (heads < 1 || width < heads)
      return fail(ErrorKind::kInvalidArgument, "{} heads do not fit a width of {}", heads, width);
    return 1 / std::sqrt(static_cast<double>(width / heads));
  }
  return fail(
      ErrorKind::kInvalidArgument,
      "MaxText scales gemma3's queries by the model's name, gemma3-4b, gemma3-12b or gemma3-27b, but it is {}; pass "
      "model_name",
      printable(name));
}

bool five_of_six(int64_t index) { return index % 6 != 5; }
bool three_of_four(int64_t index) { return index % 4 != 3; }
bool every_other(int64_t index) { return index % 2 == 0; }

}  // namespace

Result<std::unique_ptr<Decoder>> maxtext_llama(MaxtextModel model) {
  return make_maxtext<MaxtextDecoder>(std::move(model), {});
}

Result<std::unique_ptr<Decoder>> maxtext_qwen2(MaxtextModel model) {
  MaxtextTraits traits;
  MAXPORT_ASSIGN_OR_RETURN(traits.query_scale, inverse_root_of_head(*model.settings));
  MAXPORT_ASSIGN_OR_RETURN(traits.bias_qkv, model.settings->boolean("attention_bias"));
  MAXPORT_ASSIGN_OR_RETURN(traits.query_norm, model.settings->boolean("use_qk_norm"));
  return make_maxtext<MaxtextDecoder>(std::move(model), traits);
}

Result<std::unique_ptr<Decoder>> maxtext_qwen3(MaxtextModel model) {
  MaxtextTraits traits;
  MAXPORT_ASSIGN_OR_RETURN(traits.query_scale, inverse_root_of_head(*model.settings));
  MAXPORT_ASSIGN_OR_RETURN(traits.query_norm, model.settings->boolean("use_qk_norm"));
  return make_maxtext<MaxtextDecoder>(std::move(model), traits);
}

Result<std::unique_ptr<Decoder>> maxtext_gemma2(MaxtextModel model) {
  MaxtextTraits traits;
  traits.layer_norm_epsilon = 1e-6;
  traits.local = every_other;
  return make_maxtext<Gemma2Decoder>(std::move(model), traits);
}

Result<std::unique_ptr<Decoder>> maxtext_gemma3(MaxtextModel model) {
  MaxtextTraits traits;
  traits.norm_before_attention = "pre_self_attention_norm";
  traits.norm_before_mlp = "pre_ffw_norm";
  MAXPORT_ASSIGN_OR_RETURN(const bool after_attention, model.settings->boolean("use_post_attn_norm"));
  MAXPORT_ASSIGN_OR_RETURN(const bool after_mlp, model.settings->boolean("use_post_ffw_norm"));
  if (after_attention) traits.norm_after_attention = "post_self_attention_norm";
  if (after_mlp) traits.norm_after_mlp = "post_ffw_norm";
  traits.layer_norm_epsilon = 1e-6;
  traits.query_norm = true;
  MAXPORT_ASSIGN_OR_RETURN(traits.query_scale, gemma3_query_scale(*model.settings));
  traits.local = five_of_six;
  traits.block = 6;
  return make_maxtext<MaxtextDecoder>(std::move(model), traits);
}

Result<std::unique_ptr<Decoder>> maxtext_olmo3(MaxtextModel model) {
  MaxtextTraits traits;
  traits.attention = "attention";
  traits.norm_before_attention = {};
  traits.norm_after_attention = "post_self_attention_layer_norm";
  traits.norm_before_mlp = {};
  traits.norm_after_mlp = "post_mlp_layer_norm";
  MAXPORT_ASSIGN_OR_RETURN(traits.query_norm, model.settings->boolean("use_qk_norm"));
  MAXPORT_ASSIGN_OR_RETURN(traits.bias_qkv, model.settings->boolean("attention_bias"));
  traits.bias_out = traits.bias_qkv;
  MAXPORT_ASSIGN_OR_RETURN(traits.query_scale, inverse_root_of_head(*model.settings));
  traits.local = three_of_four;
  MAXPORT_ASSIGN_OR_RETURN(traits.block, model.settings->integer("inhomogeneous_layer_cycle_interval"));
  if (traits.block < 1)
    return fail(ErrorKind::kInvalidArgument, "inhomogeneous_layer_cycle_interval must be at least 1");
  return make_maxtext<MaxtextDecoder>(std::move(model), traits);
}

}  // namespace maxport::forward
