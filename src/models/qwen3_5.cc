// Qwen3.5 (mixtures of experts): the layers of Qwen3-Next with separate input projections in the files, a vision tower,
// and a float8 form whose kernels keep their block scales.
#include <algorithm>
#include <array>

#include "models/families.h"
#include "models/qwen3_hybrid.h"
#include "models/qwen3_vision.h"

namespace maxport::models {
namespace {

/// Files hold queries, keys and values of all heads, and output gates, apart; MaxText joins what belongs to one key
/// head: its query, its key, and the values and gates of the value heads that share it. Likewise b and a, one number
/// for each value head.
void add_input_projections(ParameterMap& map, const LayerGroup& layers) {
  const std::string qkv = "linear_attn.in_proj_qkv.weight";
  map.add(layers, "attention.in_proj_qkvz.kernel",
          {{qkv, "(key_heads key_dim)@0/channels emb -> emb (key_heads key_dim@0/head_qkvz)"},
           {qkv, "(key_heads key_dim)@keys/channels emb -> emb (key_heads key_dim@key_dim/head_qkvz)"},
           {qkv, "(key_heads head_values)@two_keys/channels emb -> emb (key_heads head_values@two_key_dim/head_qkvz)"},
           {"linear_attn.in_proj_z.weight",
            "(key_heads head_values) emb -> emb (key_heads head_values@head_qkv/head_qkvz)"}});
  map.add(layers, "attention.in_proj_ba.kernel",
          {{"linear_attn.in_proj_b.weight", "(key_heads sharing) emb -> emb (key_heads @0/2 sharing)"},
           {"linear_attn.in_proj_a.weight", "(key_heads sharing) emb -> emb (key_heads @1/2 sharing)"}});
}

void set_projection_sizes(Dimensions& dims) {
  const auto size = [&](std::string_view name) { return dims.get(name).value(); };
  dims.set("sharing", size("value_heads") / size("key_heads"));
  dims.set("head_values", size("sharing") * size("value_dim"));
  dims.set("keys", size("key_heads") * size("key_dim"));
  dims.set("two_keys", 2 * size("keys"));
  dims.set("two_key_dim", 2 * size("key_dim"));
  dims.set("head_qkv", size("two_key_dim") + size("head_values"));
  dims.set("head_qkvz", size("head_qkv") + size("head_values"));
}

/// The kernels that the float8 form stores as float8.
constexpr std::array<std::string_view, 12> kFloat8Kernels{
    "attention.query.kernel",  "attention.key.kernel", "attention.value.kernel",    "attention.out.kernel",
    "in_proj_qkvz.kernel",     "out_proj.kernel",      "shared_expert.wi_0.kernel", "shared_expert.wi_1.kernel",
    "shared_expert.wo.kernel", "routed_experts.wi_0",  "routed_experts.wi_1",       "routed_experts.wo"};

/// The indices that block scales divide by the block size. The others count heads, experts and the like.
constexpr std::array<std::string_view, 15> kBlocked{
    "emb",      "dim",  "query_and_gate", "attended",    "values",    "key_dim",    "head_values", "channels",
    "head_qkv", "keys", "two_keys",       "two_key_dim", "head_qkvz", "expert_mlp", "shared_mlp"};

/// The same pattern over blocks: "emb" becomes "emb_blocks".
std::string over_blocks(std::string_view pattern) {
  std::string out;
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9'); };
  while (!pattern.empty()) {
    const size_t length = static_cast<size_t>(std::ranges::find_if_not(pattern, is_word) - pattern.begin());
    const std::string_view word = pattern.substr(0, std::max<size_t>(length, 1));
    out.append(word);
    if (std::ranges::find(kBlocked, word) != kBlocked.end()) out.append("_blocks");
    pattern.remove_prefix(word.size());
  }
  return out;
}

/// Each float8 kernel has a scale for every block of its weight, laid out like the weight itself.
Result<> add_block_scales(const huggingface::ConfigRoles& config, ParameterMap& map) {
  MAXPORT_ASSIGN_OR_RETURN(const int64_t block, config.weight_block_size());
  for (std::string_view name : kBlocked) {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t size, map.dimensions.get(name));
    if (size % block != 0)
      return fail(ErrorKind::kUnsupported, "float8 weights: blocks of {} do not divide \"{}\", which is {}", block,
                  name, size);
    map.dimensions.set(std::string(name) + "_blocks", size / block);
  }
  const std::vector<Rule> kernels = map.rules;
  for (Rule rule : kernels) {
    if (std::ranges::none_of(kFloat8Kernels, [&](std::string_view name) { return rule.maxtext.ends_with(name); }))
      continue;
    rule.maxtext += "_scale";
    for (Part& part : rule.parts) part = {part.huggingface + "_scale_inv", over_blocks(part.pattern)};
    map.rules.push_back(std::move(rule));
  }
  return {};
}

/// Scanned, one group for each position in the period, stacked over periods.
Result<> add_decoder(const ModelContext& context, ParameterMap& map, int64_t period) {
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, map.dimensions.get("layers"));
  const bool scanned = context.layout.scan_layers;
  const ExpertTensors experts = context.layout.float8_weights ? ExpertTensors::kSingle : ExpertTensors::kJoined;
  if (scanned && layer_count % period != 0)
    return fail(ErrorKind::kUnsupported,
                "{} layers are not a multiple of {}, so MaxText cannot scan them; convert with "
                "scan_layers=false",
                layer_count, period);
  for (int64_t layer = 0; layer < (scanned ? period : layer_count); ++layer) {
    const LayerGroup layers{scanned ? fmt::format("decoder.layers.layer_{}", layer) : "decoder.layers_{layer}",
                            "model.language_model.layers.{layer}",
                            layer,
                            {{scanned ? layer_count / period : 1, period}},
                            scanned};
    add_hybrid_norms(map, layers);
    if ((layer + 1) % period == 0) {
      add_gated_attention(map, layers);
    } else {
      add_input_projections(map, layers);
      add_delta_network(map, layers);
    }
    MAXPORT_RETURN_IF_ERROR(add_hybrid_experts(context, map, layers, experts));
  }
  return {};
}

}  // namespace

Result<ParameterMap> qwen3_5(const ModelContext& context) {
  ParameterMap map;
  map.param_scan_axis = context.layout.param_scan_axis;
  MAXPORT_RETURN_IF_ERROR(read_hybrid_dimensions(context.config, "Qwen3.5", map.dimensions));
  set_projection_sizes(map.dimensions);
  MAXPORT_ASSIGN_OR_RETURN(const int64_t period, read_hybrid_period(context.config));

  const std::string text = "model.language_model";
  MAXPORT_RETURN_IF_ERROR(add_embedding_and_head(context, map, text + ".embed_tokens.weight", "lm_head.weight"));
  map.add("decoder.decoder_norm.scale", text + ".norm.weight", "emb -> emb");
  MAXPORT_RETURN_IF_ERROR(add_decoder(context, map, period));
  if (context.layout.float8_weights) MAXPORT_RETURN_IF_ERROR(add_block_scales(context.config, map));
  if (context.layout.use_multimodal)
    MAXPORT_RETURN_IF_ERROR(add_qwen3_vision(context, map, "vision_config",
                                             {.encoder = "Qwen3_5MoeVisionEncoder_0",
                                              .projector = "Qwen3_5MoeVisionProjector_0",
                                              .tower = "model.visual."}));
  else
    map.ignore("model.visual.*", "vision; use_multimodal is false");
  map.ignore("mtp.*", "prediction layers; mtp_num_layers is 0");
  return map;
}

}  // namespace maxport::models
