// Gemma 2: pairs of a sliding-window and a global layer, norms before and after each part. MaxText keeps a pair as one
// layer, stores norm weights as 1 + w, scales queries and the embedding by constants.
#include <cmath>

#include "models/families.h"

namespace maxport::models {
namespace {

constexpr int64_t kPair = 2;

/// `kind` is "local" or "global" and ends the names of the parts.
void add_layers(ParameterMap& map, const LayerGroup& layers, const std::string& kind, int64_t dim) {
  const auto norm = [&](const std::string& maxtext, const std::string& huggingface) {
    map.add(layers, fmt::format("{}_{}.scale", maxtext, kind), huggingface + ".weight", "emb -> emb", shift_norm());
  };
  const auto kernel = [&](const std::string& part, const std::string& name, const std::string& huggingface,
                          const std::string& pattern, Arithmetic arithmetic = {}) {
    map.add(layers, fmt::format("{}_{}.{}.kernel", part, kind, name), huggingface + ".weight", pattern,
            std::move(arithmetic));
  };
  norm("pre_self_attention_norm", "input_layernorm");
  kernel("mlp", "wi_0", "mlp.gate_proj", "mlp emb -> emb mlp");
  kernel("mlp", "wi_1", "mlp.up_proj", "mlp emb -> emb mlp");
  kernel("mlp", "wo", "mlp.down_proj", "emb mlp -> mlp emb");
  norm("post_self_attention_norm", "post_attention_layernorm");
  norm("pre_ffw_norm", "pre_feedforward_layernorm");
  norm("post_ffw_norm", "post_feedforward_layernorm");
  kernel("self_attention", "query", "self_attn.q_proj", "(heads dim) emb -> emb heads dim", scale_query(dim));
  kernel("self_attention", "key", "self_attn.k_proj", "(kv_heads dim) emb -> emb kv_heads dim");
  kernel("self_attention", "value", "self_attn.v_proj", "(kv_heads dim) emb -> emb kv_heads dim");
  kernel("self_attention", "out", "self_attn.o_proj", "emb (heads dim) -> heads dim emb");
}

}  // namespace

Result<ParameterMap> gemma2(const ModelContext& context) {
  MAXPORT_RETURN_IF_ERROR(refuse_true(context.config, "Gemma 2", {"attention_bias"}));
  MAXPORT_RETURN_IF_ERROR(check_layer_types(context.config, kPair, "sliding_attention", "full_attention"));
  ParameterMap map;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, start_decoder(context, map));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t emb, map.dimensions.get("emb"));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t dim, map.dimensions.get("dim"));
  if (layer_count % kPair != 0)
    return fail(ErrorKind::kUnsupported, "{} layers are no pairs, which MaxText's Gemma 2 is made of", layer_count);
  const auto scale = static_cast<float>(std::sqrt(static_cast<double>(emb)));
  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, "model.embed_tokens.weight", "lm_head.weight",
                                                 multiply("embedding scale", scale, 1.0f / scale)));
  map.add("decoder.decoder_norm.scale", "model.norm.weight", "emb -> emb", shift_norm());
  map.ignore("*rotary_emb.inv_freq", "rotary tables are computed, not stored");
  const bool scanned = context.layout.scan_layers;
  for (int64_t position = 0; position < kPair; ++position)
    add_layers(map,
               {scanned ? "decoder.layers" : "decoder.layers_{index}",
                "model.layers.{layer}",
                position,
                {{layer_count / kPair, kPair}},
                scanned},
               position == 0 ? "local" : "global", dim);
  return map;
}

}  // namespace maxport::models
