// Gemma 3: five sliding-window layers before each global one, norms around each part and on queries and keys; the
// larger ones see pictures through a SigLIP tower. MaxText stores norm weights as 1 + w and scales the embedding.
#include <cmath>

#include "models/blocks.h"
#include "models/families.h"
#include "tensor/cast.h"

namespace maxport::models {
namespace {

constexpr int64_t kPeriod = 6;
constexpr int64_t kColors = 3;

/// sqrt(hidden) rounded to bfloat16 first (hooks.md 3.4), as the model itself computes it.
float embedding_factor(int64_t emb) {
  const auto root = static_cast<float>(std::sqrt(static_cast<double>(emb)));
  std::byte rounded[2];
  float out;
  cast(DType::kFloat32, std::as_bytes(std::span(&root, 1)), DType::kBfloat16, rounded);
  cast(DType::kBfloat16, rounded, DType::kFloat32, std::as_writable_bytes(std::span(&out, 1)));
  return out;
}

void add_layers(ParameterMap& map, const LayerGroup& layers) {
  map.add(layers, "pre_self_attention_norm.scale", "input_layernorm.weight", "emb -> emb", shift_norm());
  map.add(layers, "post_self_attention_norm.scale", "post_attention_layernorm.weight", "emb -> emb", shift_norm());
  map.add(layers, "self_attention.query_norm.scale", "self_attn.q_norm.weight", "dim -> dim", shift_norm());
  map.add(layers, "self_attention.key_norm.scale", "self_attn.k_norm.weight", "dim -> dim", shift_norm());
  map.add(layers, "pre_ffw_norm.scale", "pre_feedforward_layernorm.weight", "emb -> emb", shift_norm());
  map.add(layers, "post_ffw_norm.scale", "post_feedforward_layernorm.weight", "emb -> emb", shift_norm());
  map.add(layers, "self_attention.query.kernel", "self_attn.q_proj.weight", "(heads dim) emb -> emb heads dim");
  map.add(layers, "self_attention.key.kernel", "self_attn.k_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "self_attention.value.kernel", "self_attn.v_proj.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "self_attention.out.kernel", "self_attn.o_proj.weight", "emb (heads dim) -> heads dim emb");
  add_gated_mlp(map, layers, "mlp", "mlp", "mlp");
}

/// Scanned: each position in the block of six is stacked by itself; layers after the last whole block stand alone.
void add_all_layers(const ModelContext& context, ParameterMap& map, int64_t count) {
  const std::string names = "model.language_model.layers.{layer}";
  if (!context.layout.scan_layers) {
    add_layers(map, decoder_layers(context, count, names));
    return;
  }
  const int64_t blocks = count / kPeriod;
  for (int64_t position = 0; position < kPeriod && blocks > 0; ++position)
    add_layers(map, {fmt::format("decoder.layers.layers_{}", position), names, position, {{blocks, kPeriod}}, true});
  for (int64_t rest = 0; rest < count % kPeriod; ++rest)
    add_layers(
        map,
        {fmt::format("decoder.layers_remainder.layers_{}", rest), names, blocks * kPeriod + rest, {{1, 1}}, false});
}

void add_vision_layers(ParameterMap& map, const LayerGroup& layers) {
  add_layer_norm(map, layers, "LayerNorm_0", "layer_norm1", "vision_emb");
  add_layer_norm(map, layers, "LayerNorm_1", "layer_norm2", "vision_emb");
  const std::string attention = "MultiHeadDotProductAttention_0.";
  for (const auto& [maxtext, huggingface] : {std::pair{"query", "q_proj"}, {"key", "k_proj"}, {"value", "v_proj"}}) {
    map.add(layers, attention + maxtext + ".kernel", fmt::format("self_attn.{}.weight", huggingface),
            "(vision_heads vision_dim) vision_emb -> vision_emb vision_heads vision_dim");
    map.add(layers, attention + maxtext + ".bias", fmt::format("self_attn.{}.bias", huggingface),
            "(vision_heads vision_dim) -> vision_heads vision_dim");
  }
  map.add(layers, attention + "out.kernel", "self_attn.out_proj.weight",
          "vision_emb (vision_heads vision_dim) -> vision_heads vision_dim vision_emb");
  map.add(layers, attention + "out.bias", "self_attn.out_proj.bias", "vision_emb -> vision_emb");
  add_linear(map, layers, "MlpBlockViT_0.Dense_0", "mlp.fc1", "vision_emb", "vision_mlp");
  add_linear(map, layers, "MlpBlockViT_0.Dense_1", "mlp.fc2", "vision_mlp", "vision_emb");
}

Result<> add_vision(const ModelContext& context, ParameterMap& map) {
  MAXPORT_ASSIGN_OR_RETURN(const auto vision, context.config.section("vision_config"));
  if (!vision)
    return fail(ErrorKind::kInvalidArgument, "use_multimodal is true, but the configuration has no vision_config");
  MAXPORT_RETURN_IF_ERROR(read_sizes(*vision,
                                     {{"vision_layers", "num_hidden_layers"},
                                      {"vision_emb", "hidden_size"},
                                      {"vision_heads", "num_attention_heads"},
                                      {"vision_mlp", "intermediate_size"},
                                      {"patch", "patch_size"}},
                                     map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t image, vision->integer("image_size"));
  const int64_t patch = map.dimensions.get("patch").value(), emb = map.dimensions.get("vision_emb").value();
  const int64_t heads = map.dimensions.get("vision_heads").value();
  if (patch < 1 || heads < 1 || emb % heads != 0)
    return fail(ErrorKind::kInvalidArgument, "vision_config: hidden_size {} cannot be split into {} heads", emb, heads);
  map.dimensions.set("vision_dim", emb / heads, "vision hidden_size / num_attention_heads");
  map.dimensions.set("positions", (image / patch) * (image / patch), "(image_size / patch_size) squared");
  map.dimensions.set("colors", kColors);

  const std::string encoder = "vision_encoder.Gemma3VisionEncoderLayer_0.", tower = "model.vision_tower.vision_model.";
  map.add(encoder + "embedding.kernel", tower + "embeddings.patch_embedding.weight",
          "vision_emb colors rows columns -> rows columns colors vision_emb");
  map.dimensions.set("rows", patch, "patch_size");
  map.dimensions.set("columns", patch, "patch_size");
  map.add(encoder + "embedding.bias", tower + "embeddings.patch_embedding.bias", "vision_emb -> vision_emb");
  map.add(encoder + "pos_embedding", tower + "embeddings.position_embedding.weight",
          "positions vision_emb -> 1 positions vision_emb");
  map.add(encoder + "Transformer.encoder_norm.scale", tower + "post_layernorm.weight", "vision_emb -> vision_emb");
  map.add(encoder + "Transformer.encoder_norm.bias", tower + "post_layernorm.bias", "vision_emb -> vision_emb");
  map.add("vision_encoder.VisionEmbedder_0.mm_input_projection.w",
          "model.multi_modal_projector.mm_input_projection_weight", "vision_emb emb -> vision_emb emb");
  map.add("vision_encoder.VisionEmbedder_0.mm_soft_embedding_norm.scale",
          "model.multi_modal_projector.mm_soft_emb_norm.weight", "vision_emb -> vision_emb", shift_norm());
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, map.dimensions.get("vision_layers"));
  add_vision_layers(
      map,
      {encoder + "Transformer.encoderblock_{layer}", tower + "encoder.layers.{layer}", 0, {{layer_count, 1}}, false});
  return {};
}

}  // namespace

Result<ParameterMap> gemma3(const ModelContext& context) {
  MAXPORT_RETURN_IF_ERROR(refuse_true(context.config, "Gemma 3", {"attention_bias"}));
  MAXPORT_RETURN_IF_ERROR(check_layer_types(context.config, kPeriod, "sliding_attention", "full_attention"));
  ParameterMap map;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, start_decoder(context, map));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t emb, map.dimensions.get("emb"));
  const float factor = embedding_factor(emb);
  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, "model.language_model.embed_tokens.weight",
                                                 "lm_head.weight", multiply("embedding scale", factor, 1.0f / factor),
                                                 "rows beyond MaxText's vocabulary are no tokens"));
  map.add("decoder.decoder_norm.scale", "model.language_model.norm.weight", "emb -> emb", shift_norm());
  add_all_layers(context, map, layer_count);
  map.ignore("*rotary_emb.inv_freq", "rotary tables are computed, not stored");
  if (context.layout.use_multimodal) {
    MAXPORT_RETURN_IF_ERROR(add_vision(context, map));
  } else {
    for (const char* part : {"model.vision_tower.*", "model.multi_modal_projector.*"})
      map.ignore(part, "a part for pictures, and use_multimodal is false");
  }
  return map;
}

}  // namespace maxport::models
