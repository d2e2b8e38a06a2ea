#include "maxtext/derived_settings.h"

namespace maxport::maxtext {
namespace {

/// Experts that every token visits, counted in widths of a routed one.
Result<> set_shared_experts(SettingsBuilder& builder) {
  MAXPORT_ASSIGN_OR_RETURN(int64_t shared, builder.config.integer_or("shared_expert_intermediate_size", 0));
  if (shared == 0) return {};
  MAXPORT_ASSIGN_OR_RETURN(int64_t routed, builder.config.integer("moe_intermediate_size"));
  if (routed == 0 || shared % routed != 0)
    return fail(ErrorKind::kUnsupported,
                "the shared expert is {} wide and a routed one {}; MaxText needs a multiple of the latter", shared, routed);
  builder.set("shared_experts", shared / routed);
  return {};
}

Result<> set_qwen(SettingsBuilder& builder) {
  MAXPORT_RETURN_IF_ERROR(builder.copy("base_moe_mlp_dim", "moe_intermediate_size"));
  MAXPORT_RETURN_IF_ERROR(set_shared_experts(builder));
  // The hybrid models normalize whatever their configuration says.
  const bool hybrid = builder.facts.family == "qwen3-next" || builder.facts.family == "qwen3.5";
  MAXPORT_ASSIGN_OR_RETURN(bool normalized, builder.config.boolean_or("norm_topk_prob", hybrid));
  builder.set("norm_topk_prob", normalized || builder.facts.family == "qwen3.5");
  return {};
}

Result<> set_gpt_oss(SettingsBuilder& builder) {
  MAXPORT_RETURN_IF_ERROR(builder.copy("base_moe_mlp_dim", "intermediate_size"));
  MAXPORT_ASSIGN_OR_RETURN(double limit, builder.config.number_or("swiglu_limit", 7.0));
  builder.set("mlp_activations_limit", limit);
  builder.set("routed_bias", true);
  builder.set("mlp_bias", true);
  return {};
}

/// How scores become weights; files saved by transformers no longer say it.
std::string_view usual_scoring(std::string_view family) {
  if (family == "deepseek2") return "softmax";
  return family == "deepseek4" ? "sqrtsoftplus" : "sigmoid";
}

Result<> set_deepseek(SettingsBuilder& builder) {
  const std::string_view family = builder.facts.family;
  MAXPORT_RETURN_IF_ERROR(builder.copy("base_moe_mlp_dim", "moe_intermediate_size"));
  MAXPORT_RETURN_IF_ERROR(builder.copy("shared_experts", "n_shared_experts"));
  MAXPORT_ASSIGN_OR_RETURN(double scale, builder.config.number_or("routed_scaling_factor", 1.0));
  builder.set("routed_scaling_factor", scale);
  MAXPORT_ASSIGN_OR_RETURN(auto scoring, builder.config.optional_text("scoring_func"));
  builder.set("routed_score_func", scoring.value_or(std::string(usual_scoring(family))));
  builder.set("routed_bias", family != "deepseek2");
  if (builder.facts.experts == ExpertStyle::kDeepseek4) {
    MAXPORT_ASSIGN_OR_RETURN(bool normalized, builder.config.boolean_or("norm_topk_prob", true));
    builder.set("norm_topk_prob", normalized);
    return builder.copy("mlp_activations_limit", "swiglu_limit");
  }
  MAXPORT_ASSIGN_OR_RETURN(int64_t dense, builder.config.integer_or("first_k_dense_replace", 0));
  builder.set("first_num_dense_layers", dense);
  MAXPORT_ASSIGN_OR_RETURN(int64_t groups, builder.config.integer_or("n_group", 1));
  if (groups < 2) return {};
  if (family == "deepseek2") {
    builder.note("the model routes tokens to groups of experts; MaxText's deepseek2 does not");
    return {};
  }
  builder.set("n_routing_groups", groups);
  return builder.copy("topk_routing_group", "topk_group");
}

}  // namespace

Result<> derive_experts(SettingsBuilder& builder) {
  MAXPORT_ASSIGN_OR_RETURN(int64_t experts, builder.config.integer_or("num_experts", 0));
  if (builder.facts.experts == ExpertStyle::kDense || experts == 0) return {};
  builder.set("num_experts", experts);
  MAXPORT_RETURN_IF_ERROR(builder.copy("num_experts_per_tok", "num_experts_per_tok"));
  switch (builder.facts.experts) {
    case ExpertStyle::kDense: return {};
    case ExpertStyle::kMixtral: return builder.copy("base_moe_mlp_dim", "intermediate_size");
    case ExpertStyle::kQwen: return set_qwen(builder);
    case ExpertStyle::kGemma4:
      builder.set("shared_experts", 1);
      builder.set("norm_topk_prob", true);
      return builder.copy("base_moe_mlp_dim", "moe_intermediate_size");
    case ExpertStyle::kGptOss: return set_gpt_oss(builder);
    case ExpertStyle::kDeepseek:
    case ExpertStyle::kDeepseek4: return set_deepseek(builder);
  }
  return {};
}

}  // namespace maxport::maxtext
