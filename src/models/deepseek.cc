// DeepSeek V2, V3 and V3.2: multi-head latent attention, a few dense layers, then mixtures of routed and shared
// experts.
//
// V3 adds a router bias that training balances instead of learning, and layers that predict further tokens. V3.2 adds
// the lightning indexer, which chooses the tokens that a query attends to.
#include "models/blocks.h"
#include "models/families.h"

namespace maxport::models {
namespace {

struct Variant {
  std::string_view title;
  bool router_bias;
  bool indexer;
};

/// Queries from the hidden state, directly or through a low-rank bottleneck; keys and values through a shared one, with
/// one rotary key for all heads beside it.
void add_latent_attention(ParameterMap& map, const LayerGroup& layers, bool low_rank_queries) {
  if (low_rank_queries) {
    map.add(layers, "self_attention.wq_a.kernel", "self_attn.q_a_proj.weight", "q_rank emb -> emb q_rank");
    map.add(layers, "self_attention.q_norm.scale", "self_attn.q_a_layernorm.weight", "q_rank -> q_rank");
    map.add(layers, "self_attention.wq_b.kernel", "self_attn.q_b_proj.weight",
            "(heads qk_dim) q_rank -> q_rank heads qk_dim");
  } else {
    map.add(layers, "self_attention.query.kernel", "self_attn.q_proj.weight", "(heads qk_dim) emb -> emb heads qk_dim");
  }
  map.add(layers, "self_attention.wkv_a.kernel", "self_attn.kv_a_proj_with_mqa.weight",
          "rank_and_rope emb -> emb rank_and_rope");
  map.add(layers, "self_attention.kv_norm.scale", "self_attn.kv_a_layernorm.weight", "kv_rank -> kv_rank");
  map.add(layers, "self_attention.wkv_b.kernel", "self_attn.kv_b_proj.weight",
          "(heads key_and_value) kv_rank -> kv_rank heads key_and_value");
  map.add(layers, "self_attention.out.kernel", "self_attn.o_proj.weight", "emb (heads v_dim) -> heads v_dim emb");
}

void add_indexer(ParameterMap& map, const LayerGroup& layers) {
  map.add(layers, "self_attention.indexer.wq_b.kernel", "self_attn.indexer.wq_b.weight",
          "(index_heads index_dim) q_rank -> q_rank index_heads index_dim");
  map.add(layers, "self_attention.indexer.wk.kernel", "self_attn.indexer.wk.weight", "index_dim emb -> emb index_dim");
  map.add(layers, "self_attention.indexer.k_norm.scale", "self_attn.indexer.k_norm.weight", "index_dim -> index_dim");
  map.add(layers, "self_attention.indexer.k_norm.bias", "self_attn.indexer.k_norm.bias", "index_dim -> index_dim");
  map.add(layers, "self_attention.indexer.weights_proj.kernel", "self_attn.indexer.weights_proj.weight",
          "index_heads emb -> emb index_heads");
}

void add_attention(ParameterMap& map, const LayerGroup& layers, const Variant& variant, bool low_rank_queries) {
  map.add(layers, "pre_self_attention_layer_norm.scale", "input_layernorm.weight", "emb -> emb");
  add_latent_attention(map, layers, low_rank_queries);
  if (variant.indexer) add_indexer(map, layers);
  map.add(layers, "post_self_attention_layer_norm.scale", "post_attention_layernorm.weight", "emb -> emb");
}

Result<> add_expert_mlp(const ModelContext& context, ParameterMap& map, const LayerGroup& layers, bool router_bias) {
  const std::string block = "DeepSeekMoeBlock_0.MoeBlock_0";
  map.add(layers, block + ".gate.kernel", "mlp.gate.weight", "expert emb -> emb expert");
  if (router_bias) {
    Rule& bias = map.add(layers, block + ".gate.bias", "mlp.gate.e_score_correction_bias", "expert -> expert");
    bias.collection = "MoEBiasVar";
    bias.stack_axis = 0;
  }
  add_gated_mlp(map, layers, "DeepSeekMoeBlock_0.shared_experts", "mlp.shared_experts", "shared_mlp");
  return add_experts(context, map, layers, block, "mlp.experts", ExpertTensors::kSingle);
}

/// The layers after the last one, each of which predicts one token further from the hidden state and the embedding of
/// the token before it. Files repeat embedding and head there; the model shares them.
Result<> add_prediction_layers(const ModelContext& context, ParameterMap& map, const Variant& variant, int64_t first,
                               bool low_rank_queries) {
  MAXPORT_ASSIGN_OR_RETURN(const int64_t there, context.config.integer_or("num_nextn_predict_layers", 0));
  const int64_t wanted = context.layout.mtp_num_layers;
  if (wanted > there)
    return fail(ErrorKind::kInvalidArgument, "mtp_num_layers is {}, but the model has {} prediction layers ({})",
                wanted, there, context.config.source_of("num_nextn_predict_layers"));
  for (int64_t layer = first + wanted; layer < first + there; ++layer)
    map.ignore(fmt::format("model.layers.{}.*", layer), fmt::format("prediction layer; mtp_num_layers is {}", wanted));
  if (wanted == 0) return {};

  const std::string name = "mtp_block.mtp_layer_{number}";
  const LayerGroup extra{name, "model.layers.{layer}", first, {{wanted, 1}}, false};
  map.add(extra, "mtp_{number}_embedding_norm.scale", "enorm.weight", "emb -> emb");
  map.add(extra, "mtp_{number}_hidden_state_norm.scale", "hnorm.weight", "emb -> emb");
  map.add(extra, "mtp_{number}_projection.kernel", "eh_proj.weight", "emb features -> features emb");
  map.add(extra, "mtp_{number}_final_norm.scale", "shared_head.norm.weight", "emb -> emb");
  LayerGroup layers = extra;
  layers.maxtext += ".mtp_{number}_transformer_layer";
  add_attention(map, layers, variant, low_rank_queries);
  MAXPORT_RETURN_IF_ERROR(add_expert_mlp(context, map, layers, variant.router_bias));
  for (int64_t layer = first; layer < first + wanted; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    add_equal(context, map, "model.embed_tokens.weight", prefix + "embed_tokens.weight", "the model has one embedding");
    add_equal(context, map, "lm_head.weight", prefix + "shared_head.head.weight", "the model has one output head");
  }
  return {};
}

Result<> read_dimensions(const ModelContext& context, const Variant& variant, bool low_rank_queries, Dimensions& dims) {
  const auto& config = context.config;
  MAXPORT_RETURN_IF_ERROR(read_sizes(config,
                                     {{"vocab", "vocab_size"},
                                      {"layers", "num_hidden_layers"},
                                      {"emb", "hidden_size"},
                                      {"heads", "num_attention_heads"},
                                      {"kv_rank", "kv_lora_rank"},
                                      {"nope_dim", "qk_nope_head_dim"},
                                      {"rope_dim", "qk_rope_head_dim"},
                                      {"v_dim", "v_head_dim"},
                                      {"mlp", "intermediate_size"},
                                      {"expert", "num_experts"},
                                      {"expert_mlp", "moe_intermediate_size"},
                                      {"shared_experts", "n_shared_experts"}},
                                     dims));
  if (low_rank_queries) MAXPORT_RETURN_IF_ERROR(read_sizes(config, {{"q_rank", "q_lora_rank"}}, dims));
  if (variant.indexer)
    MAXPORT_RETURN_IF_ERROR(
        read_sizes(config, {{"index_heads", "index_n_heads"}, {"index_dim", "index_head_dim"}}, dims));
  const auto size = [&](std::string_view name) { return dims.get(name).value(); };
  dims.set("qk_dim", size("nope_dim") + size("rope_dim"));
  dims.set("rank_and_rope", size("kv_rank") + size("rope_dim"));
  dims.set("key_and_value", size("nope_dim") + size("v_dim"));
  dims.set("shared_mlp", size("shared_experts") * size("expert_mlp"));
  dims.set("features", 2 * size("emb"));
  return {};
}

/// Layers come in two runs, "dense_layers" and "moe_layers", each counted from 0 in MaxText's names.
LayerGroup run_of_layers(const ModelContext& context, std::string_view kind, int64_t first, int64_t count) {
  const bool scanned = context.layout.scan_layers;
  return {fmt::format("decoder.{}{}", kind, scanned ? "" : "_{index}"),
          "model.layers.{layer}",
          first,
          {{count, 1}},
          scanned};
}

Result<ParameterMap> decoder(const ModelContext& context, const Variant& variant) {
  MAXPORT_RETURN_IF_ERROR(refuse_true(context.config, variant.title, {"attention_bias", "mlp_bias"}));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t moe_every, context.config.integer_or("moe_layer_freq", 1));
  if (moe_every != 1)
    return fail(ErrorKind::kUnsupported,
                "moe_layer_freq is {}, but in MaxText every layer after the dense ones has experts", moe_every);
  MAXPORT_ASSIGN_OR_RETURN(const int64_t q_rank, context.config.integer_or("q_lora_rank", 0));
  const bool low_rank_queries = q_rank > 0;

  ParameterMap map;
  map.param_scan_axis = context.layout.param_scan_axis;
  MAXPORT_RETURN_IF_ERROR(read_dimensions(context, variant, low_rank_queries, map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, map.dimensions.get("layers"));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t dense_count, context.config.integer("first_k_dense_replace"));
  if (dense_count > layer_count)
    return fail(ErrorKind::kCorruptData, "first_k_dense_replace is {}, but there are {} layers", dense_count,
                layer_count);

  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, "model.embed_tokens.weight", "lm_head.weight"));
  map.add("decoder.decoder_norm.scale", "model.norm.weight", "emb -> emb");
  if (dense_count > 0) {
    const LayerGroup layers = run_of_layers(context, "dense_layers", 0, dense_count);
    add_attention(map, layers, variant, low_rank_queries);
    add_gated_mlp(map, layers, "mlp", "mlp", "mlp");
  }
  if (dense_count < layer_count) {
    const LayerGroup layers = run_of_layers(context, "moe_layers", dense_count, layer_count - dense_count);
    add_attention(map, layers, variant, low_rank_queries);
    MAXPORT_RETURN_IF_ERROR(add_expert_mlp(context, map, layers, variant.router_bias));
  }
  MAXPORT_RETURN_IF_ERROR(add_prediction_layers(context, map, variant, layer_count, low_rank_queries));
  map.ignore("model.layers.*.self_attn.rotary_emb.inv_freq", "rotary tables are computed, not stored");
  return map;
}

}  // namespace

Result<ParameterMap> deepseek2(const ModelContext& context) { return decoder(context, {"DeepSeek V2", false, false}); }

Result<ParameterMap> deepseek3(const ModelContext& context) { return decoder(context, {"DeepSeek V3", true, false}); }

Result<ParameterMap> deepseek32(const ModelContext& context) { return decoder(context, {"DeepSeek V3.2", true, true}); }

}  // namespace maxport::models
