#include "models/qwen3_hybrid.h"

#include <algorithm>

namespace maxport::models {

Result<> read_hybrid_dimensions(const huggingface::ConfigRoles& config, std::string_view model, Dimensions& dims) {
  MAXPORT_RETURN_IF_ERROR(refuse_true(config, model, {"attention_bias"}));
  MAXPORT_ASSIGN_OR_RETURN(const auto dense_layers, config.integers("mlp_only_layers"));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t sparse_step, config.integer_or("decoder_sparse_step", 1));
  if (!dense_layers.empty() || sparse_step != 1)
    return fail(ErrorKind::kUnsupported,
                "mlp_only_layers or decoder_sparse_step ask for layers without experts, which "
                "MaxText's {} does not have",
                model);
  MAXPORT_RETURN_IF_ERROR(read_sizes(config,
                                     {{"vocab", "vocab_size"},
                                      {"layers", "num_hidden_layers"},
                                      {"emb", "hidden_size"},
                                      {"heads", "num_attention_heads"},
                                      {"kv_heads", "num_key_value_heads"},
                                      {"dim", "head_dim"},
                                      {"key_heads", "linear_num_key_heads"},
                                      {"key_dim", "linear_key_head_dim"},
                                      {"value_heads", "linear_num_value_heads"},
                                      {"value_dim", "linear_value_head_dim"},
                                      {"taps", "linear_conv_kernel_dim"},
                                      {"expert", "num_experts"},
                                      {"expert_mlp", "moe_intermediate_size"},
                                      {"shared_mlp", "shared_expert_intermediate_size"}},
                                     dims));
  const auto size = [&](std::string_view name) { return dims.get(name).value(); };
  if (size("value_heads") % size("key_heads") != 0)
    return fail(ErrorKind::kCorruptData, "{} value heads cannot share {} key heads", size("value_heads"),
                size("key_heads"));
  dims.set("query_and_gate", 2 * size("dim"));
  dims.set("attended", size("heads") * size("dim"));
  dims.set("values", size("value_heads") * size("value_dim"));
  dims.set("channels", 2 * size("key_heads") * size("key_dim") + size("values"));
  return {};
}

Result<int64_t> read_hybrid_period(const huggingface::ConfigRoles& config) {
  MAXPORT_ASSIGN_OR_RETURN(const auto types, config.layer_types());
  const auto first = std::ranges::find(types, "full_attention");
  const int64_t listed = first == types.end() ? 4 : first - types.begin() + 1;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t period, config.integer_or("full_attention_interval", listed));
  MAXPORT_RETURN_IF_ERROR(check_layer_types(config, period, "linear_attention", "full_attention"));
  return period;
}

void add_hybrid_norms(ParameterMap& map, const LayerGroup& layers) {
  map.add(layers, "input_layernorm.scale", "input_layernorm.weight", "emb -> emb");
  map.add(layers, "post_attention_layernorm.scale", "post_attention_layernorm.weight", "emb -> emb");
}

void add_gated_attention(ParameterMap& map, const LayerGroup& layers) {
  map.add(layers, "attention.attention.query.kernel", "self_attn.q_proj.weight",
          "(heads query_and_gate) emb -> emb heads query_and_gate");
  map.add(layers, "attention.attention.key.kernel", "self_attn.k_proj.weight",
          "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "attention.attention.value.kernel", "self_attn.v_proj.weight",
          "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "attention.attention.out.kernel", "self_attn.o_proj.weight", "emb attended -> attended emb");
  map.add(layers, "attention.attention.query_norm.scale", "self_attn.q_norm.weight", "dim -> dim");
  map.add(layers, "attention.attention.key_norm.scale", "self_attn.k_norm.weight", "dim -> dim");
}

void add_delta_network(ParameterMap& map, const LayerGroup& layers) {
  map.add(layers, "attention.conv1d.kernel", "linear_attn.conv1d.weight", "channels 1 taps -> taps 1 channels");
  map.add(layers, "attention.A_log", "linear_attn.A_log", "value_heads -> value_heads");
  map.add(layers, "attention.dt_bias", "linear_attn.dt_bias", "value_heads -> value_heads");
  map.add(layers, "attention.norm.rms_norm.scale", "linear_attn.norm.weight", "value_dim -> value_dim");
  map.add(layers, "attention.out_proj.kernel", "linear_attn.out_proj.weight", "emb values -> values emb");
}

Result<> add_hybrid_experts(const ModelContext& context, ParameterMap& map, const LayerGroup& layers,
                            ExpertTensors published) {
  map.add(layers, "mlp.routed_experts.gate.kernel", "mlp.gate.weight", "expert emb -> emb expert");
  add_gated_mlp(map, layers, "mlp.shared_expert", "mlp.shared_expert", "shared_mlp");
  map.add(layers, "mlp.shared_expert_gate.kernel", "mlp.shared_expert_gate.weight", "1 emb -> emb 1");
  return add_experts(context, map, layers, "mlp.routed_experts", "mlp.experts", published);
}

}  // namespace maxport::models
