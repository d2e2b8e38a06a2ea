// Mistral and Mixtral: grouped-query attention with scaled queries; SwiGLU, in Mixtral by eight routed experts a layer.
#include "models/blocks.h"
#include "models/families.h"

namespace maxport::models {
namespace {

/// Everything but the feed-forward part; returns the layers for it.
Result<LayerGroup> add_decoder(const ModelContext& context, ParameterMap& map) {
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, start_decoder(context, map));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t dim, map.dimensions.get("dim"));
  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, "model.embed_tokens.weight", "lm_head.weight"));
  map.add("decoder.decoder_norm.scale", "model.norm.weight", "emb -> emb");
  const LayerGroup layers = decoder_layers(context, layer_count);
  map.add(layers, "self_attention.query.kernel", "self_attn.q_proj.weight", "(heads dim) emb -> emb heads dim",
          scale_query(dim));
  map.add(layers, "self_attention.key.kernel", "self_attn.k_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "self_attention.value.kernel", "self_attn.v_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "self_attention.out.kernel", "self_attn.o_proj.weight", "emb (heads dim) -> heads dim emb");
  map.add(layers, "pre_self_attention_layer_norm.scale", "input_layernorm.weight", "emb -> emb");
  map.add(layers, "post_self_attention_layer_norm.scale", "post_attention_layernorm.weight", "emb -> emb");
  map.ignore("*rotary_emb.inv_freq", "rotary tables are computed, not stored");
  return layers;
}

}  // namespace

Result<ParameterMap> mistral(const ModelContext& context) {
  ParameterMap map;
  MAXPORT_ASSIGN_OR_RETURN(const LayerGroup layers, add_decoder(context, map));
  add_gated_mlp(map, layers, "mlp", "mlp", "mlp");
  return map;
}

Result<ParameterMap> mixtral(const ModelContext& context) {
  ParameterMap map;
  MAXPORT_RETURN_IF_ERROR(read_sizes(context.config, {{"expert", "num_local_experts"}}, map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const LayerGroup layers, add_decoder(context, map));
  if (context.source_has("model.layers.0.mlp.experts.gate_up_proj")) {
    // As transformers 5 holds and saves it.
    MAXPORT_ASSIGN_OR_RETURN(const int64_t mlp, map.dimensions.get("mlp"));
    map.dimensions.set("expert_mlp", mlp, "intermediate_size");
    map.add(layers, "MoeBlock_0.gate.kernel", "mlp.gate.weight", "expert emb -> emb expert");
    MAXPORT_RETURN_IF_ERROR(add_experts(context, map, layers, "MoeBlock_0", "mlp.experts", ExpertTensors::kJoined));
    return map;
  }
  map.add(layers, "MoeBlock_0.gate.kernel", "block_sparse_moe.gate.weight", "expert emb -> emb expert");
  map.add(layers, "MoeBlock_0.wi_0", "block_sparse_moe.experts.{expert}.w1.weight", "mlp emb -> expert emb mlp");
  map.add(layers, "MoeBlock_0.wi_1", "block_sparse_moe.experts.{expert}.w3.weight", "mlp emb -> expert emb mlp");
  map.add(layers, "MoeBlock_0.wo", "block_sparse_moe.experts.{expert}.w2.weight", "emb mlp -> expert mlp emb");
  return map;
}

}  // namespace maxport::models
