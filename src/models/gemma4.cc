// Gemma 4 (26B with experts, 31B dense): sandwich norms, five sliding-window layers before each global one, whose keys
// also serve as values; a vision tower of its own.
#include "models/gemma4.h"

#include "models/blocks.h"
#include "models/families.h"

namespace maxport::models {
namespace {

constexpr int64_t kPeriod = 6;
constexpr int64_t kColors = 3;

/// The two kinds of attention differ in sizes, named by a prefix: "local_heads", "global_dim", ...
void add_attention(ParameterMap& map, const LayerGroup& layers, const std::string& kind, bool with_values) {
  const std::string dim = kind + "_dim", kv_heads = kind + "_kv_heads";
  map.add(layers, "self_attention.query.kernel", "self_attn.q_proj.weight",
          fmt::format("(heads {0}) emb -> emb heads {0}", dim));
  map.add(layers, "self_attention.key.kernel", "self_attn.k_proj.weight",
          fmt::format("({0} {1}) emb -> emb {0} {1}", kv_heads, dim));
  if (with_values)
    map.add(layers, "self_attention.value.kernel", "self_attn.v_proj.weight",
            fmt::format("({0} {1}) emb -> emb {0} {1}", kv_heads, dim));
  map.add(layers, "self_attention.out.kernel", "self_attn.o_proj.weight",
          fmt::format("emb (heads {0}) -> heads {0} emb", dim));
  map.add(layers, "self_attention.query_norm.scale", "self_attn.q_norm.weight", dim + " -> " + dim);
  map.add(layers, "self_attention.key_norm.scale", "self_attn.k_norm.weight", dim + " -> " + dim);
}

void add_norms_and_scalar(ParameterMap& map, const LayerGroup& layers) {
  map.add(layers, "pre_self_attention_norm.scale", "input_layernorm.weight", "emb -> emb");
  map.add(layers, "post_self_attention_norm.scale", "post_attention_layernorm.weight", "emb -> emb");
  map.add(layers, "pre_ffw_norm.scale", "pre_feedforward_layernorm.weight", "emb -> emb");
  map.add(layers, "post_ffw_norm.scale", "post_feedforward_layernorm.weight", "emb -> emb");
  map.add(layers, "layer_scalar", "layer_scalar", "1 -> 1");
}

/// A dense MLP and routed experts side by side, each with norms around it.
Result<> add_expert_mlp(const ModelContext& context, ParameterMap& map, const LayerGroup& layers) {
  map.add(layers, "mlp.pre_feedforward_layernorm_2.scale", "pre_feedforward_layernorm_2.weight", "emb -> emb");
  map.add(layers, "mlp.post_feedforward_layernorm_1.scale", "post_feedforward_layernorm_1.weight", "emb -> emb");
  map.add(layers, "mlp.post_feedforward_layernorm_2.scale", "post_feedforward_layernorm_2.weight", "emb -> emb");
  map.add(layers, "mlp.pre_forward_scale_2", "router.scale", "emb -> emb");
  map.add(layers, "mlp.moe_block.MoeBlock_0.gate.kernel", "router.proj.weight", "expert emb -> emb expert");
  map.add(layers, "mlp.moe_block.MoeBlock_0.per_expert_scale", "router.per_expert_scale", "expert -> expert");
  add_gated_mlp(map, layers, "mlp.moe_block.shared_experts", "mlp", "mlp");
  return add_experts(context, map, layers, "mlp.moe_block.MoeBlock_0", "experts", ExpertTensors::kJoined);
}

void add_vision_layers(ParameterMap& map, const LayerGroup& layers) {
  for (const auto& [maxtext, huggingface] : {std::pair{"query", "q_proj"}, {"key", "k_proj"}, {"value", "v_proj"}})
    map.add(layers, fmt::format("attention.{}.kernel", maxtext), fmt::format("self_attn.{}.linear.weight", huggingface),
            "(vision_heads vision_dim) vision_emb -> vision_emb vision_heads vision_dim");
  map.add(layers, "attention.out.kernel", "self_attn.o_proj.linear.weight",
          "vision_emb (vision_heads vision_dim) -> vision_heads vision_dim vision_emb");
  map.add(layers, "attention.query_norm.scale", "self_attn.q_norm.weight", "vision_dim -> vision_dim");
  map.add(layers, "attention.key_norm.scale", "self_attn.k_norm.weight", "vision_dim -> vision_dim");
  map.add(layers, "pre_attention_norm.scale", "input_layernorm.weight", "vision_emb -> vision_emb");
  map.add(layers, "post_attention_norm.scale", "post_attention_layernorm.weight", "vision_emb -> vision_emb");
  map.add(layers, "pre_ffw_norm.scale", "pre_feedforward_layernorm.weight", "vision_emb -> vision_emb");
  map.add(layers, "post_ffw_norm.scale", "post_feedforward_layernorm.weight", "vision_emb -> vision_emb");
  map.add(layers, "mlp.wi_0.kernel", "mlp.gate_proj.linear.weight", "vision_mlp vision_emb -> vision_emb vision_mlp");
  map.add(layers, "mlp.wi_1.kernel", "mlp.up_proj.linear.weight", "vision_mlp vision_emb -> vision_emb vision_mlp");
  map.add(layers, "mlp.wo.kernel", "mlp.down_proj.linear.weight", "vision_emb vision_mlp -> vision_mlp vision_emb");
}

/// Patches are projected and get a learned position for each of their two coordinates; the encoder's output may be
/// standardised before it is projected to the decoder's width.
Result<> add_vision(const ModelContext& context, ParameterMap& map) {
  MAXPORT_ASSIGN_OR_RETURN(const auto vision, context.config.section("vision_config"));
  if (!vision)
    return fail(ErrorKind::kInvalidArgument, "use_multimodal is true, but the configuration has no vision_config");
  MAXPORT_RETURN_IF_ERROR(refuse_true(*vision, "Gemma 4 vision", {"attention_bias", "use_clipped_linears"}));
  MAXPORT_RETURN_IF_ERROR(read_sizes(*vision,
                                     {{"vision_layers", "num_hidden_layers"},
                                      {"vision_emb", "hidden_size"},
                                      {"vision_heads", "num_attention_heads"},
                                      {"vision_dim", "head_dim"},
                                      {"vision_mlp", "intermediate_size"},
                                      {"patch", "patch_size"},
                                      {"positions", "position_embedding_size"}},
                                     map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, map.dimensions.get("vision_layers"));
  const int64_t patch = map.dimensions.get("patch").value();
  map.dimensions.set("patch_values", patch * patch * kColors);

  const std::string encoder = "vision_encoder.Gemma4VisionEncoderLayer_0.", tower = "model.vision_tower.";
  map.add(encoder + "vision_entry.input_projection.kernel", tower + "patch_embedder.input_proj.weight",
          "vision_emb patch_values -> patch_values vision_emb");
  map.add(encoder + "vision_entry.pos_emb_param", tower + "patch_embedder.position_embedding_table",
          "2 positions vision_emb -> positions 2 vision_emb");
  add_vision_layers(map, {encoder + "layer_{layer}", tower + "encoder.layers.{layer}", 0, {{layer_count, 1}}, false});
  MAXPORT_ASSIGN_OR_RETURN(const bool standardized, vision->boolean_or("standardize", false));
  if (standardized) {
    map.add(encoder + "std_scale", tower + "std_scale", "vision_emb -> vision_emb");
    map.add(encoder + "std_bias", tower + "std_bias", "vision_emb -> vision_emb");
  }
  map.add("vision_encoder.Gemma4VisionProjector_0.projection.kernel", "model.embed_vision.embedding_projection.weight",
          "emb vision_emb -> vision_emb emb");
  return {};
}

Result<> read_dimensions(const huggingface::ConfigRoles& config, bool experts, Dimensions& dims) {
  MAXPORT_RETURN_IF_ERROR(read_sizes(config,
                                     {{"vocab", "vocab_size"},
                                      {"layers", "num_hidden_layers"},
                                      {"emb", "hidden_size"},
                                      {"heads", "num_attention_heads"},
                                      {"local_kv_heads", "num_key_value_heads"},
                                      {"local_dim", "head_dim"},
                                      {"mlp", "intermediate_size"}},
                                     dims));
  if (experts)
    MAXPORT_RETURN_IF_ERROR(
        read_sizes(config, {{"expert", "num_experts"}, {"expert_mlp", "moe_intermediate_size"}}, dims));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t dim, gemma4_global_size(config, "global_head_dim", "head_dim"));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t kv_heads,
                           gemma4_global_size(config, "num_global_key_value_heads", "num_key_value_heads"));
  dims.set("global_dim", dim);
  dims.set("global_kv_heads", kv_heads);
  return {};
}

}  // namespace

Result<int64_t> gemma4_global_size(const huggingface::ConfigRoles& config, std::string_view stated,
                                   std::string_view role) {
  MAXPORT_ASSIGN_OR_RETURN(std::optional<int64_t> size, config.optional_integer(stated));
  const auto single = config.section_json().find("per_layer_config");
  if (!size && single != config.section_json().end() && single->is_object()) {
    for (const auto& [layer, changes] : single->items()) {
      const auto change = changes.is_object() ? changes.find(role) : changes.end();
      if (!changes.is_object() || change == changes.end()) continue;
      if (!change->is_number_integer() || (size && *size != change->get<int64_t>()))
        return fail(ErrorKind::kUnsupported,
                    "per_layer_config says {} is {} in layer {}, but in MaxText's model all global "
                    "layers have the same size",
                    role, printable(change->dump()), printable(layer));
      size = change->get<int64_t>();
    }
  }
  if (!size) return config.integer(role);
  if (*size < 1 || *size > UINT16_MAX)
    return fail(ErrorKind::kCorruptData, "{} of the global layers is {}, expected 1 to {}", role, *size, UINT16_MAX);
  return *size;
}

void gemma4_ignore_towers(const ModelContext& context, ParameterMap& map) {
  if (!context.layout.use_multimodal)
    for (const char* tower : {"model.vision_tower.*", "model.embed_vision.*"})
      map.ignore(tower, "vision; use_multimodal is false");
  for (const char* tower : {"model.audio_tower.*", "model.embed_audio.*"})
    map.ignore(tower, "audio; MaxText's model has none");
}

Result<ParameterMap> gemma4(const ModelContext& context) {
  MAXPORT_RETURN_IF_ERROR(refuse_true(context.config, "Gemma 4", {"attention_bias"}));
  MAXPORT_RETURN_IF_ERROR(check_layer_types(context.config, kPeriod, "sliding_attention", "full_attention"));
  MAXPORT_ASSIGN_OR_RETURN(const bool experts, context.config.boolean_or("enable_moe_block", false));
  MAXPORT_ASSIGN_OR_RETURN(const bool keys_are_values, context.config.boolean_or("attention_k_eq_v", false));
  ParameterMap map;
  map.param_scan_axis = context.layout.param_scan_axis;
  MAXPORT_RETURN_IF_ERROR(read_dimensions(context.config, experts, map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, map.dimensions.get("layers"));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t emb, map.dimensions.get("emb"));

  const std::string text = "model.language_model";
  MAXPORT_RETURN_IF_ERROR(
      add_embedding_and_head(context, map, text + ".embed_tokens.weight", "lm_head.weight", scale_embedding(emb)));
  map.add("decoder.decoder_norm.scale", text + ".norm.weight", "emb -> emb");
  const auto add_layers = [&](const LayerGroup& layers, const std::string& kind, bool with_values) -> Result<> {
    add_norms_and_scalar(map, layers);
    add_attention(map, layers, kind, with_values);
    if (experts) return add_expert_mlp(context, map, layers);
    add_gated_mlp(map, layers, "mlp", "mlp", "mlp");
    return {};
  };
  const auto layers =
      periodic_layers(context, layer_count, kPeriod, "decoder.scanned_blocks", text + ".layers.{layer}");
  for (const LayerGroup& local : layers.local) MAXPORT_RETURN_IF_ERROR(add_layers(local, "local", true));
  for (const LayerGroup& global : layers.global)
    MAXPORT_RETURN_IF_ERROR(add_layers(global, "global", !keys_are_values));

  if (context.layout.use_multimodal) MAXPORT_RETURN_IF_ERROR(add_vision(context, map));
  gemma4_ignore_towers(context, map);
  return map;
}

}  // namespace maxport::models
