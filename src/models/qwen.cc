// Qwen2.5 (biases on queries, keys and values) and Qwen3 (norms on queries and keys), dense or with experts.
#include "models/families.h"
#include "models/qwen3_layers.h"

namespace maxport::models {

Result<ParameterMap> qwen25(const ModelContext& context) {
  ParameterMap map;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, start_decoder(context, map));
  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, "model.embed_tokens.weight", "lm_head.weight"));
  map.add("decoder.decoder_norm.scale", "model.norm.weight", "emb -> emb");
  const LayerGroup layers = decoder_layers(context, layer_count);
  map.add(layers, "pre_self_attention_layer_norm.scale", "input_layernorm.weight", "emb -> emb");
  map.add(layers, "self_attention.query.kernel", "self_attn.q_proj.weight", "(heads dim) emb -> emb heads dim");
  map.add(layers, "self_attention.key.kernel", "self_attn.k_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "self_attention.value.kernel", "self_attn.v_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "self_attention.query.bias", "self_attn.q_proj.bias", "(heads dim) -> heads dim");
  map.add(layers, "self_attention.key.bias", "self_attn.k_proj.bias", "(kv_heads dim) -> kv_heads dim");
  map.add(layers, "self_attention.value.bias", "self_attn.v_proj.bias", "(kv_heads dim) -> kv_heads dim");
  map.add(layers, "self_attention.out.kernel", "self_attn.o_proj.weight", "emb (heads dim) -> heads dim emb");
  map.add(layers, "post_self_attention_layer_norm.scale", "post_attention_layernorm.weight", "emb -> emb");
  add_gated_mlp(map, layers, "mlp", "mlp", "mlp");
  map.ignore("*rotary_emb.inv_freq", "rotary tables are computed, not stored");
  return map;
}

Result<ParameterMap> qwen3(const ModelContext& context) {
  ParameterMap map;
  map.param_scan_axis = context.layout.param_scan_axis;
  MAXPORT_RETURN_IF_ERROR(add_qwen3_decoder(context, map, "Qwen3", {.text = "model."}));
  return map;
}

}  // namespace maxport::models
