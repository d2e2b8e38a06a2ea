// Gemma 4 E2B and E4B: the small models that add a second, per-layer embedding of each token to every layer, and whose
// last layers use the keys and values of earlier ones.
#include "models/blocks.h"
#include "models/families.h"
#include "models/gemma4.h"

namespace maxport::models {
namespace {

/// What one layer is, by its place in the stack.
struct LayerKind {
  bool global;                     ///< attends to everything, with sizes of its own
  std::optional<int64_t> keys_of;  ///< uses the keys and values of this layer
  bool double_wide;                ///< MLP of twice the width
};

void add_attention(ParameterMap& map, const LayerGroup& layer, const LayerKind& kind) {
  const std::string dim = kind.global ? "global_dim" : "local_dim";
  const std::string keys = fmt::format("(kv_heads {0}) emb -> emb kv_heads {0}", dim);
  map.add(layer, "self_attention.query.kernel", "self_attn.q_proj.weight",
          fmt::format("(heads {0}) emb -> emb heads {0}", dim));
  map.add(layer, "self_attention.query_norm.scale", "self_attn.q_norm.weight", dim + " -> " + dim);
  map.add(layer, "self_attention.out.kernel", "self_attn.o_proj.weight",
          fmt::format("emb (heads {0}) -> heads {0} emb", dim));
  if (!kind.keys_of) {
    map.add(layer, "self_attention.key.kernel", "self_attn.k_proj.weight", keys);
    map.add(layer, "self_attention.value.kernel", "self_attn.v_proj.weight", keys);
    map.add(layer, "self_attention.key_norm.scale", "self_attn.k_norm.weight", dim + " -> " + dim);
    return;
  }
  for (const char* unused : {"k_proj", "v_proj", "k_norm"})
    map.surplus.push_back(
        {layer.huggingface_name(fmt::format("self_attn.{}.*", unused)),
         fmt::format("layer {} shares keys and values with layer {}", layer.first_layer, *kind.keys_of)});
}

void add_layer(ParameterMap& map, const LayerGroup& layer, const LayerKind& kind) {
  map.add(layer, "pre_self_attention_norm.scale", "input_layernorm.weight", "emb -> emb");
  add_attention(map, layer, kind);
  map.add(layer, "post_self_attention_norm.scale", "post_attention_layernorm.weight", "emb -> emb");
  map.add(layer, "pre_ffw_norm.scale", "pre_feedforward_layernorm.weight", "emb -> emb");
  add_gated_mlp(map, layer, "mlp", "mlp", kind.double_wide ? "double_mlp" : "mlp");
  map.add(layer, "post_ffw_norm.scale", "post_feedforward_layernorm.weight", "emb -> emb");
  map.add(layer, "per_layer_input_gate.kernel", "per_layer_input_gate.weight", "layer_emb emb -> emb layer_emb");
  map.add(layer, "per_layer_projection.kernel", "per_layer_projection.weight", "emb layer_emb -> layer_emb emb");
  map.add(layer, "post_per_layer_input_norm.scale", "post_per_layer_input_norm.weight", "emb -> emb");
  map.add(layer, "layer_scalar", "layer_scalar", "1 -> 1");
}

/// The embeddings for all layers of a token stand side by side in one row.
void add_per_layer_embedder(ParameterMap& map, const std::string& text) {
  const std::string embedder = "decoder.per_layer_embedder";
  map.add(embedder + ".embed_tokens_per_layer", text + ".embed_tokens_per_layer.weight",
          "layer_vocab all_layers_emb -> layer_vocab all_layers_emb");
  map.add(embedder + ".per_layer_model_projection.kernel", text + ".per_layer_model_projection.weight",
          "all_layers_emb emb -> emb all_layers_emb");
  map.add(embedder + ".per_layer_projection_norm.scale", text + ".per_layer_projection_norm.weight",
          "layer_emb -> layer_emb");
}

Result<> read_dimensions(const huggingface::ConfigRoles& config, Dimensions& dims) {
  MAXPORT_RETURN_IF_ERROR(read_sizes(config,
                                     {{"vocab", "vocab_size"},
                                      {"layers", "num_hidden_layers"},
                                      {"emb", "hidden_size"},
                                      {"heads", "num_attention_heads"},
                                      {"kv_heads", "num_key_value_heads"},
                                      {"local_dim", "head_dim"},
                                      {"mlp", "intermediate_size"},
                                      {"layer_emb", "hidden_size_per_layer_input"},
                                      {"layer_vocab", "vocab_size_per_layer_input"}},
                                     dims));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t dim, gemma4_global_size(config, "global_head_dim", "head_dim"));
  dims.set("global_dim", dim);
  dims.set("double_mlp", 2 * dims.get("mlp").value());
  dims.set("all_layers_emb", dims.get("layers").value() * dims.get("layer_emb").value());
  return {};
}

/// Every kind of layer in order. A layer without keys of its own uses those of the last layer of its kind that has
/// some.
Result<std::vector<LayerKind>> layer_kinds(const huggingface::ConfigRoles& config) {
  MAXPORT_ASSIGN_OR_RETURN(const auto types, config.layer_types());
  if (types.empty()) return fail(ErrorKind::kNotFound, "layer_types is missing, which says what layers attend to");
  MAXPORT_ASSIGN_OR_RETURN(const int64_t shared, config.integer_or("num_kv_shared_layers", 0));
  MAXPORT_ASSIGN_OR_RETURN(const bool double_wide, config.boolean_or("use_double_wide_mlp", false));
  const int64_t own = static_cast<int64_t>(types.size()) - shared;
  std::vector<LayerKind> kinds;
  std::optional<int64_t> last_local, last_global;
  for (int64_t layer = 0; layer < static_cast<int64_t>(types.size()); ++layer) {
    const bool global = types[static_cast<size_t>(layer)] == "full_attention";
    auto& last = global ? last_global : last_local;
    const bool shares = layer >= own;
    if (shares && !last)
      return fail(ErrorKind::kCorruptData,
                  "num_kv_shared_layers is {}, but no layer before layer {} has keys that it "
                  "could use",
                  shared, layer);
    if (!shares) last = layer;
    kinds.push_back({global, shares ? last : std::nullopt, shares && double_wide});
  }
  return kinds;
}

}  // namespace

bool gemma4_is_small(const huggingface::ConfigRoles& config) {
  return config.integer_or("hidden_size_per_layer_input", 0).value_or(0) > 0;
}

bool gemma4_is_large(const huggingface::ConfigRoles& config) { return !gemma4_is_small(config); }

Result<ParameterMap> gemma4_small(const ModelContext& context) {
  if (context.layout.use_multimodal)
    return fail(ErrorKind::kUnsupported,
                "use_multimodal is true, but MaxText's small Gemma 4 models take text only; "
                "convert with use_multimodal=false");
  MAXPORT_RETURN_IF_ERROR(
      refuse_true(context.config, "small Gemma 4", {"attention_bias", "enable_moe_block", "attention_k_eq_v"}));
  ParameterMap map;
  MAXPORT_RETURN_IF_ERROR(read_dimensions(context.config, map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t emb, map.dimensions.get("emb"));

  const std::string text = "model.language_model";
  MAXPORT_RETURN_IF_ERROR(
      add_embedding_and_head(context, map, text + ".embed_tokens.weight", "lm_head.weight", scale_embedding(emb)));
  map.add("decoder.decoder_norm.scale", text + ".norm.weight", "emb -> emb");
  add_per_layer_embedder(map, text);
  MAXPORT_ASSIGN_OR_RETURN(const auto kinds, layer_kinds(context.config));
  for (int64_t layer = 0; layer < static_cast<int64_t>(kinds.size()); ++layer)
    add_layer(map, {"decoder.layers_{layer}", text + ".layers.{layer}", layer, {}, false},
              kinds[static_cast<size_t>(layer)]);
  gemma4_ignore_towers(context, map);
  return map;
}

}  // namespace maxport::models
