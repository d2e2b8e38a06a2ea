// gpt-oss: attention with sinks and biases, windowed in every other layer; every layer has experts whose gate and up
// projections are interleaved column by column.
#include "models/families.h"

namespace maxport::models {
namespace {

/// Layers come in pairs, one with a sliding window and one without; scanned, MaxText stacks each kind by itself.
constexpr int64_t kPeriod = 2;

void add_layers(ParameterMap& map, const LayerGroup& layers) {
  map.add(layers, "pre_self_attention_layer_norm.scale", "input_layernorm.weight", "emb -> emb");
  map.add(layers, "post_self_attention_layer_norm.scale", "post_attention_layernorm.weight", "emb -> emb");
  map.add(layers, "GptOssAttention.query.kernel", "self_attn.q_proj.weight", "(heads dim) emb -> emb heads dim");
  map.add(layers, "GptOssAttention.query.bias", "self_attn.q_proj.bias", "(heads dim) -> heads dim");
  map.add(layers, "GptOssAttention.key.kernel", "self_attn.k_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "GptOssAttention.key.bias", "self_attn.k_proj.bias", "(kv_heads dim) -> kv_heads dim");
  map.add(layers, "GptOssAttention.value.kernel", "self_attn.v_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "GptOssAttention.value.bias", "self_attn.v_proj.bias", "(kv_heads dim) -> kv_heads dim");
  map.add(layers, "GptOssAttention.out.kernel", "self_attn.o_proj.weight", "emb (heads dim) -> heads dim emb");
  map.add(layers, "GptOssAttention.out.bias", "self_attn.o_proj.bias", "emb -> emb");
  map.add(layers, "GptOssAttention.sinks", "self_attn.sinks", "heads -> heads");
  map.add(layers, "GptOssMlp.gate.kernel", "mlp.router.weight", "expert emb -> emb expert");
  map.add(layers, "GptOssMlp.gate.bias", "mlp.router.bias", "expert -> expert");
  map.add(layers, "GptOssMlp.wi_0", "mlp.experts.gate_up_proj", "expert emb (mlp @0/2) -> expert emb mlp");
  map.add(layers, "GptOssMlp.wi_1", "mlp.experts.gate_up_proj", "expert emb (mlp @1/2) -> expert emb mlp");
  map.add(layers, "GptOssMlp.wi_0_bias", "mlp.experts.gate_up_proj_bias", "expert (mlp @0/2) -> expert mlp");
  map.add(layers, "GptOssMlp.wi_1_bias", "mlp.experts.gate_up_proj_bias", "expert (mlp @1/2) -> expert mlp");
  map.add(layers, "GptOssMlp.wo", "mlp.experts.down_proj", "expert mlp emb -> expert mlp emb");
  map.add(layers, "GptOssMlp.wo_bias", "mlp.experts.down_proj_bias", "expert emb -> expert emb");
}

}  // namespace

Result<ParameterMap> gpt_oss(const ModelContext& context) {
  if (context.source_has("model.layers.0.mlp.experts.gate_up_proj_blocks"))
    return fail(ErrorKind::kUnsupported,
                "the experts are quantized (MXFP4: gate_up_proj_blocks and _scales), as in the published "
                "files; dequantize the model to bfloat16 first, e.g. by saving it with transformers");
  ParameterMap map;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, start_decoder(context, map));
  MAXPORT_RETURN_IF_ERROR(read_sizes(context.config, {{"expert", "num_local_experts"}}, map.dimensions));
  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, "model.embed_tokens.weight", "lm_head.weight"));
  map.add("decoder.decoder_norm.scale", "model.norm.weight", "emb -> emb");
  if (!context.layout.scan_layers) {
    add_layers(map, decoder_layers(context, layer_count));
    return map;
  }
  if (layer_count % kPeriod != 0)
    return fail(ErrorKind::kUnsupported, "{} layers cannot be scanned in pairs; convert with scan_layers=false",
                layer_count);
  for (int64_t position = 0; position < kPeriod; ++position)
    add_layers(map, {fmt::format("decoder.layers.layers_{}", position),
                     "model.layers.{layer}",
                     position,
                     {{layer_count / kPeriod, kPeriod}},
                     true});
  return map;
}

}  // namespace maxport::models
