// Llama 3.1 and everything of its architecture: grouped-query attention with interleaved rotary halves, SwiGLU.
#include "models/families.h"

namespace maxport::models {

Result<ParameterMap> llama(const ModelContext& context) {
  for (std::string_view role : {"attention_bias", "mlp_bias"}) {
    MAXPORT_ASSIGN_OR_RETURN(const bool biased, context.config.boolean_or(role, false));
    if (biased)
      return fail(ErrorKind::kUnsupported, "{} is true, but MaxText's Llama layers have no biases",
                  context.config.source_of(role));
  }
  ParameterMap map;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, start_decoder(context, map));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t dim, map.dimensions.get("dim"));
  if (dim % 2 != 0) return fail(ErrorKind::kUnsupported, "head_dim {} is odd; rotary halves need an even one", dim);
  map.dimensions.set("half", dim / 2, "head_dim / 2");

  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, "model.embed_tokens.weight", "lm_head.weight"));
  map.add("decoder.decoder_norm.scale", "model.norm.weight", "emb -> emb");

  const LayerGroup layers = decoder_layers(context, layer_count);
  map.add(layers, "pre_self_attention_layer_norm.scale", "input_layernorm.weight", "emb -> emb");
  map.add(layers, "self_attention.query.kernel", "self_attn.q_proj.weight", "(heads 2 half) emb -> emb heads (half 2)",
          scale_query(dim));
  map.add(layers, "self_attention.key.kernel", "self_attn.k_proj.weight",
          "(kv_heads 2 half) emb -> emb kv_heads (half 2)");
  map.add(layers, "self_attention.value.kernel", "self_attn.v_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "self_attention.out.kernel", "self_attn.o_proj.weight", "emb (heads dim) -> heads dim emb");
  map.add(layers, "post_self_attention_layer_norm.scale", "post_attention_layernorm.weight", "emb -> emb");
  map.add(layers, "mlp.wi_0.kernel", "mlp.gate_proj.weight", "mlp emb -> emb mlp");
  map.add(layers, "mlp.wi_1.kernel", "mlp.up_proj.weight", "mlp emb -> emb mlp");
  map.add(layers, "mlp.wo.kernel", "mlp.down_proj.weight", "emb mlp -> mlp emb");
  map.ignore("*rotary_emb.inv_freq", "rotary tables are computed, not stored");
  return map;
}

}  // namespace maxport::models
