// DeepSeek V4: hyper-connections around every block, attention over compressed keys and values, experts chosen by a
// hash of the token in the first layers and by a router in the others. Names are those of DeepSeek's own files.
#include "models/blocks.h"
#include "models/families.h"

namespace maxport::models {
namespace {

// The two ways to compress keys and values, by the number of tokens that become one entry: lightly, with an indexer
// that chooses entries, or heavily.
constexpr int64_t kSparse = 4, kHeavy = 128;

/// Several residual streams; each block reads a mix of them, writes to all and mixes them among one another. One tensor
/// holds the weights of the three mixes: "pre" and "post", one for each stream, and "res", one for each pair.
void add_hyper_connection(ParameterMap& map, const LayerGroup& layers, const std::string& maxtext,
                          const std::string& huggingface) {
  map.add_constant(layers, maxtext + ".mhc_norm.scale", "streams_emb", 1.0f);
  map.add(layers, maxtext + ".pre_alpha", huggingface + "_fn", "stream@0/mixes streams_emb -> streams_emb stream");
  map.add(layers, maxtext + ".post_alpha", huggingface + "_fn",
          "stream@stream/mixes streams_emb -> streams_emb stream");
  map.add(layers, maxtext + ".res_alpha", huggingface + "_fn",
          "pair@two_streams/mixes streams_emb -> streams_emb pair");
  map.add(layers, maxtext + ".pre_beta", huggingface + "_base", "stream@0/mixes -> stream");
  map.add(layers, maxtext + ".post_beta", huggingface + "_base", "stream@stream/mixes -> stream");
  map.add(layers, maxtext + ".res_beta", huggingface + "_base",
          "(stream other_stream)@two_streams/mixes -> stream other_stream");
  map.add(layers, maxtext + ".pre_alpha_scale", huggingface + "_scale", "@0/3 -> 1");
  map.add(layers, maxtext + ".post_alpha_scale", huggingface + "_scale", "@1/3 -> 1");
  map.add(layers, maxtext + ".res_alpha_scale", huggingface + "_scale", "@2/3 -> 1");
}

/// Shared-key-value attention with a low-rank query and an output projection in groups.
void add_attention(ParameterMap& map, const LayerGroup& layers) {
  map.add(layers, "self_attention.wq_a.kernel", "attn.wq_a.weight", "q_rank emb -> emb q_rank");
  map.add(layers, "self_attention.q_norm.scale", "attn.q_norm.weight", "q_rank -> q_rank");
  map.add(layers, "self_attention.wq_b.kernel", "attn.wq_b.weight", "(heads dim) q_rank -> q_rank heads dim");
  map.add(layers, "self_attention.wkv.kernel", "attn.wkv.weight", "(kv_heads dim) emb -> emb kv_heads dim");
  map.add(layers, "self_attention.kv_norm.scale", "attn.kv_norm.weight", "dim -> dim");
  map.add(layers, "self_attention.sinks", "attn.attn_sink", "heads -> heads");
  map.add(layers, "self_attention.o_a_proj.kernel", "attn.wo_a.weight",
          "(group o_rank) group_in -> group group_in o_rank");
  map.add(layers, "self_attention.o_b_proj.kernel", "attn.wo_b.weight", "emb (group o_rank) -> (group o_rank) emb");
}

/// Pools `window` tokens into one entry of `dim`, weighted by a gate and a learned position bias. `width` is dim, or
/// twice that where windows overlap.
void add_compressor(ParameterMap& map, const LayerGroup& layers, const std::string& maxtext,
                    const std::string& huggingface, const std::string& window, const std::string& width,
                    const std::string& dim) {
  const std::string projection = width + " emb -> emb " + width;
  map.add(layers, maxtext + ".kv_proj.kernel", huggingface + ".wkv.weight", projection);
  map.add(layers, maxtext + ".gate_proj.kernel", huggingface + ".wgate.weight", projection);
  map.add(layers, maxtext + ".kv_norm.scale", huggingface + ".norm.weight", dim + " -> " + dim);
  map.add(layers, maxtext + ".position_bias", huggingface + ".ape",
          window + " " + width + " -> " + window + " " + width);
}

Result<> add_compression(ParameterMap& map, const LayerGroup& layers, int64_t ratio) {
  switch (ratio) {
    case 0:
      return {};
    case kHeavy:
      add_compressor(map, layers, "self_attention.hca_compressor", "attn.compressor", "heavy_window", "dim", "dim");
      return {};
    case kSparse: {
      const std::string sparse = "self_attention.csa_compressor", indexer = sparse + ".indexer";
      add_compressor(map, layers, sparse, "attn.compressor", "sparse_window", "two_dim", "dim");
      add_compressor(map, layers, indexer, "attn.indexer.compressor", "sparse_window", "two_index_dim", "index_dim");
      map.add(layers, indexer + ".q_proj.kernel", "attn.indexer.wq_b.weight",
              "(index_heads index_dim) q_rank -> q_rank (index_heads index_dim)");
      map.add(layers, indexer + ".weights_proj.kernel", "attn.indexer.weights_proj.weight",
              "index_heads emb -> emb index_heads");
      return {};
    }
    default:
      return fail(ErrorKind::kUnsupported, "compress_ratios has {} at layer {}; MaxText knows 0, {} and {}", ratio,
                  layers.first_layer, kSparse, kHeavy);
  }
}

/// DeepSeek's own names for gate, down and up.
void add_experts_and_shared(ParameterMap& map, const LayerGroup& layers, bool chosen_by_hash) {
  map.add(layers, "mlp.MoeBlock_0.gate.kernel", "ffn.gate.weight", "expert emb -> emb expert");
  Rule& choice = chosen_by_hash
                     ? map.add(layers, "mlp.MoeBlock_0.tid2eid", "ffn.gate.tid2eid", "vocab chosen -> vocab chosen")
                     : map.add(layers, "mlp.MoeBlock_0.gate.bias", "ffn.gate.bias", "expert -> expert");
  choice.collection = chosen_by_hash ? "Tid2EidVar" : "MoEBiasVar";
  choice.stack_axis = 0;
  const std::string expert = "ffn.experts.{expert}", shared = "ffn.shared_experts";
  map.add(layers, "mlp.MoeBlock_0.wi_0", expert + ".w1.weight", "expert_mlp emb -> expert emb expert_mlp");
  map.add(layers, "mlp.MoeBlock_0.wi_1", expert + ".w3.weight", "expert_mlp emb -> expert emb expert_mlp");
  map.add(layers, "mlp.MoeBlock_0.wo", expert + ".w2.weight", "emb expert_mlp -> expert expert_mlp emb");
  map.add(layers, "mlp.shared_experts.wi_0.kernel", shared + ".w1.weight", "shared_mlp emb -> emb shared_mlp");
  map.add(layers, "mlp.shared_experts.wi_1.kernel", shared + ".w3.weight", "shared_mlp emb -> emb shared_mlp");
  map.add(layers, "mlp.shared_experts.wo.kernel", shared + ".w2.weight", "emb shared_mlp -> shared_mlp emb");
}

Result<> add_layers(ParameterMap& map, const LayerGroup& layers, int64_t ratio, bool chosen_by_hash) {
  map.add(layers, "pre_self_attention_layer_norm.scale", "attn_norm.weight", "emb -> emb");
  add_hyper_connection(map, layers, "mhc_attention", "hc_attn");
  add_attention(map, layers);
  MAXPORT_RETURN_IF_ERROR(add_compression(map, layers, ratio));
  map.add(layers, "post_self_attention_layer_norm.scale", "ffn_norm.weight", "emb -> emb");
  add_hyper_connection(map, layers, "mhc_mlp", "hc_ffn");
  add_experts_and_shared(map, layers, chosen_by_hash);
  return {};
}

LayerGroup one_layer(int64_t layer) { return {"decoder.layers_{layer}", "layers.{layer}", layer, {}, false}; }

/// Scanned, MaxText keeps the hash layers apart and stacks the others in pairs of heavy and sparse compression.
Result<> add_decoder(const ModelContext& context, ParameterMap& map, int64_t layer_count) {
  MAXPORT_ASSIGN_OR_RETURN(const int64_t hash_layers, context.config.integer_or("num_hash_layers", 0));
  MAXPORT_ASSIGN_OR_RETURN(const auto ratios, context.config.integers("compress_ratios"));
  if (static_cast<int64_t>(ratios.size()) < layer_count || hash_layers < 0 || hash_layers > layer_count)
    return fail(ErrorKind::kCorruptData, "{} layers, but {} compress_ratios and num_hash_layers {}", layer_count,
                ratios.size(), hash_layers);
  const int64_t unrolled = context.layout.scan_layers ? hash_layers : layer_count;
  for (int64_t layer = 0; layer < unrolled; ++layer)
    MAXPORT_RETURN_IF_ERROR(add_layers(map, one_layer(layer), ratios[static_cast<size_t>(layer)], layer < hash_layers));
  if (unrolled == layer_count) return {};

  for (int64_t layer = unrolled; layer < layer_count; ++layer) {
    const int64_t wanted = (layer - unrolled) % 2 == 0 ? kHeavy : kSparse;
    if (ratios[static_cast<size_t>(layer)] != wanted || (layer_count - unrolled) % 2 != 0)
      return fail(ErrorKind::kUnsupported,
                  "scanned, MaxText stacks pairs of layers with compress_ratios {} and {} after "
                  "{} hash layers, but layer {} has {}; convert with scan_layers=false",
                  kHeavy, kSparse, unrolled, layer, ratios[static_cast<size_t>(layer)]);
  }
  const LayerGroup::Loop pairs{(layer_count - unrolled) / 2, 2};
  const LayerGroup heavy{"decoder.scanned_blocks.layers_0", "layers.{layer}", unrolled, {pairs}, true};
  const LayerGroup sparse{"decoder.scanned_blocks.layers_1", "layers.{layer}", unrolled + 1, {pairs}, true};
  MAXPORT_RETURN_IF_ERROR(add_layers(map, heavy, kHeavy, false));
  return add_layers(map, sparse, kSparse, false);
}

Result<> read_dimensions(const huggingface::ConfigRoles& config, Dimensions& dims) {
  MAXPORT_RETURN_IF_ERROR(read_sizes(config,
                                     {{"vocab", "vocab_size"},
                                      {"layers", "num_hidden_layers"},
                                      {"emb", "hidden_size"},
                                      {"heads", "num_attention_heads"},
                                      {"kv_heads", "num_key_value_heads"},
                                      {"dim", "head_dim"},
                                      {"q_rank", "q_lora_rank"},
                                      {"group", "o_groups"},
                                      {"o_rank", "o_lora_rank"},
                                      {"index_heads", "index_n_heads"},
                                      {"index_dim", "index_head_dim"},
                                      {"stream", "hc_mult"},
                                      {"expert", "num_experts"},
                                      {"chosen", "num_experts_per_tok"},
                                      {"expert_mlp", "moe_intermediate_size"},
                                      {"shared_experts", "n_shared_experts"}},
                                     dims));
  const auto size = [&](std::string_view name) { return dims.get(name).value(); };
  const int64_t streams = size("stream"), attention_out = size("heads") * size("dim");
  if (attention_out % size("group") != 0)
    return fail(ErrorKind::kCorruptData, "{} attention outputs do not divide into {} groups (o_groups)", attention_out,
                size("group"));
  dims.set("group_in", attention_out / size("group"));
  dims.set("other_stream", streams);
  dims.set("pair", streams * streams);
  dims.set("two_streams", 2 * streams);
  dims.set("mixes", 2 * streams + streams * streams);
  dims.set("streams_emb", streams * size("emb"));
  dims.set("heavy_window", kHeavy);
  dims.set("sparse_window", kSparse);
  dims.set("two_dim", 2 * size("dim"));
  dims.set("two_index_dim", 2 * size("index_dim"));
  dims.set("shared_mlp", size("shared_experts") * size("expert_mlp"));
  return {};
}

}  // namespace

Result<ParameterMap> deepseek4(const ModelContext& context) {
  MAXPORT_RETURN_IF_ERROR(refuse_true(context.config, "DeepSeek V4", {"attention_bias", "mlp_bias"}));
  ParameterMap map;
  map.param_scan_axis = context.layout.param_scan_axis;
  MAXPORT_RETURN_IF_ERROR(read_dimensions(context.config, map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, map.dimensions.get("layers"));

  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, "embed.weight", "head.weight"));
  map.add("decoder.decoder_norm.scale", "norm.weight", "emb -> emb");
  map.add("decoder.hc_head.hc_fn", "hc_head_fn", "stream streams_emb -> streams_emb stream");
  map.add("decoder.hc_head.hc_base", "hc_head_base", "stream -> stream");
  map.add("decoder.hc_head.hc_scale", "hc_head_scale", "1 -> 1");
  MAXPORT_RETURN_IF_ERROR(add_decoder(context, map, layer_count));
  map.ignore("mtp.*", "prediction layers; mtp_num_layers is 0");
  return map;
}

}  // namespace maxport::models
