// Qwen3-Next: three gated delta networks, then one layer of gated attention; every layer a mixture of experts.
#include "models/families.h"
#include "models/qwen3_hybrid.h"

namespace maxport::models {

Result<ParameterMap> qwen3_next(const ModelContext& context) {
  ParameterMap map;
  map.param_scan_axis = context.layout.param_scan_axis;
  MAXPORT_RETURN_IF_ERROR(read_hybrid_dimensions(context.config, "Qwen3-Next", map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t period, read_hybrid_period(context.config));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, map.dimensions.get("layers"));
  // Files keep queries, keys, values and output gates of a key head together, as the model reads them.
  const auto size = [&](std::string_view name) { return map.dimensions.get(name).value(); };
  map.dimensions.set("qkvz", size("channels") + size("values"));
  map.dimensions.set("ba", 2 * size("value_heads"));

  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, "model.embed_tokens.weight", "lm_head.weight"));
  map.add("decoder.decoder_norm.scale", "model.norm.weight", "emb -> emb");
  const auto layers = periodic_layers(context, layer_count, period, "decoder.layers", "model.layers.{layer}");
  for (const LayerGroup& linear : layers.local) {
    add_hybrid_norms(map, linear);
    map.add(linear, "attention.in_proj_qkvz.kernel", "linear_attn.in_proj_qkvz.weight", "qkvz emb -> emb qkvz");
    map.add(linear, "attention.in_proj_ba.kernel", "linear_attn.in_proj_ba.weight", "ba emb -> emb ba");
    add_delta_network(map, linear);
    MAXPORT_RETURN_IF_ERROR(add_hybrid_experts(context, map, linear, ExpertTensors::kSingle));
  }
  for (const LayerGroup& full : layers.global) {
    add_hybrid_norms(map, full);
    add_gated_attention(map, full);
    MAXPORT_RETURN_IF_ERROR(add_hybrid_experts(context, map, full, ExpertTensors::kSingle));
  }
  map.ignore("mtp.*", "prediction layers; mtp_num_layers is 0");
  return map;
}

}  // namespace maxport::models
