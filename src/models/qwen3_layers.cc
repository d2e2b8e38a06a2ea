#include "models/qwen3_layers.h"

namespace maxport::models {
namespace {

void add_attention(ParameterMap& map, const LayerGroup& layers, const Qwen3Names& names) {
  const auto tensor = [](const std::string& name) { return fmt::format("self_attn.{}.weight", name); };
  map.add(layers, "self_attention.query.kernel", tensor(names.query), "(heads dim) emb -> emb heads dim");
  map.add(layers, "self_attention.key.kernel", tensor(names.key), "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "self_attention.value.kernel", tensor(names.value), "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "self_attention.out.kernel", tensor(names.out), "emb (heads dim) -> heads dim emb");
  map.add(layers, "self_attention.query_norm.scale", tensor(names.query_norm), "dim -> dim");
  map.add(layers, "self_attention.key_norm.scale", tensor(names.key_norm), "dim -> dim");
}

/// True when all layers have experts; MaxText cannot mix.
Result<bool> read_experts(const huggingface::ConfigRoles& config, Dimensions& dims) {
  MAXPORT_ASSIGN_OR_RETURN(const int64_t experts, config.integer_or("num_experts", 0));
  if (experts == 0) {
    MAXPORT_RETURN_IF_ERROR(read_sizes(config, {{"mlp", "intermediate_size"}}, dims));
    return false;
  }
  MAXPORT_ASSIGN_OR_RETURN(const auto dense_layers, config.integers("mlp_only_layers"));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t sparse_step, config.integer_or("decoder_sparse_step", 1));
  if (!dense_layers.empty() || sparse_step != 1)
    return fail(ErrorKind::kUnsupported,
                "mlp_only_layers or decoder_sparse_step ask for some layers without experts, "
                "which MaxText's Qwen3 cannot mix with others");
  MAXPORT_RETURN_IF_ERROR(
      read_sizes(config, {{"expert", "num_experts"}, {"expert_mlp", "moe_intermediate_size"}}, dims));
  return true;
}

}  // namespace

Result<> add_qwen3_decoder(const ModelContext& context, ParameterMap& map, std::string_view model,
                           const Qwen3Names& names) {
  MAXPORT_RETURN_IF_ERROR(refuse_true(context.config, model, {"attention_bias"}));
  MAXPORT_RETURN_IF_ERROR(read_sizes(context.config,
                                     {{"vocab", "vocab_size"},
                                      {"layers", "num_hidden_layers"},
                                      {"emb", "hidden_size"},
                                      {"heads", "num_attention_heads"},
                                      {"kv_heads", "num_key_value_heads"},
                                      {"dim", "head_dim"}},
                                     map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const bool experts, read_experts(context.config, map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, map.dimensions.get("layers"));

  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, names.text + "embed_tokens.weight", names.head));
  map.add("decoder.decoder_norm.scale", names.text + "norm.weight", "emb -> emb");
  const LayerGroup layers = decoder_layers(context, layer_count, names.text + "layers.{layer}");
  map.add(layers, "pre_self_attention_layer_norm.scale", "input_layernorm.weight", "emb -> emb");
  add_attention(map, layers, names);
  map.add(layers, "post_self_attention_layer_norm.scale", "post_attention_layernorm.weight", "emb -> emb");
  map.ignore(names.text + "layers.*.self_attn.rotary_emb.inv_freq", "rotary tables are computed, not stored");
  if (!experts) {
    add_gated_mlp(map, layers, "mlp", "mlp", "mlp");
    return {};
  }
  map.add(layers, "moe_block.gate.kernel", "mlp.gate.weight", "expert emb -> emb expert");
  return add_experts(context, map, layers, "moe_block", "mlp.experts", names.experts);
}

}  // namespace maxport::models
