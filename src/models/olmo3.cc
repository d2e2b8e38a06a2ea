// Olmo 3: norms after attention and MLP, and over all of a token's queries and keys; three sliding-window layers before
// each global one.
#include "models/blocks.h"
#include "models/families.h"

namespace maxport::models {
namespace {

constexpr int64_t kPeriod = 4;

void add_layers(ParameterMap& map, const LayerGroup& layers) {
  map.add(layers, "attention.query.kernel", "self_attn.q_proj.weight", "(heads dim) emb -> emb heads dim");
  map.add(layers, "attention.key.kernel", "self_attn.k_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "attention.value.kernel", "self_attn.v_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "attention.out.kernel", "self_attn.o_proj.weight", "emb (heads dim) -> heads dim emb");
  map.add(layers, "attention.query_norm.scale", "self_attn.q_norm.weight", "(heads dim) -> (heads dim)");
  map.add(layers, "attention.key_norm.scale", "self_attn.k_norm.weight", "(kv_heads dim) -> (kv_heads dim)");
  add_gated_mlp(map, layers, "mlp", "mlp", "mlp");
  map.add(layers, "post_self_attention_layer_norm.scale", "post_attention_layernorm.weight", "emb -> emb");
  map.add(layers, "post_mlp_layer_norm.scale", "post_feedforward_layernorm.weight", "emb -> emb");
}

}  // namespace

Result<ParameterMap> olmo3(const ModelContext& context) {
  MAXPORT_RETURN_IF_ERROR(refuse_true(context.config, "Olmo 3", {"attention_bias"}));
  MAXPORT_RETURN_IF_ERROR(check_layer_types(context.config, kPeriod, "sliding_attention", "full_attention"));
  ParameterMap map;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, start_decoder(context, map));
  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, "model.embed_tokens.weight", "lm_head.weight"));
  map.add("decoder.decoder_norm.scale", "model.norm.weight", "emb -> emb");
  map.ignore("*rotary_emb.inv_freq", "rotary tables are computed, not stored");
  if (!context.layout.scan_layers) {
    add_layers(map, decoder_layers(context, layer_count));
    return map;
  }
  if (layer_count % kPeriod != 0)
    return fail(ErrorKind::kUnsupported, "{} layers cannot be scanned in blocks of {}; convert with scan_layers=false",
                layer_count, kPeriod);
  for (int64_t position = 0; position < kPeriod; ++position)
    add_layers(map, {fmt::format("decoder.layers.layers_{}", position),
                     "model.layers.{layer}",
                     position,
                     {{layer_count / kPeriod, kPeriod}},
                     true});
  return map;
}

}  // namespace maxport::models
