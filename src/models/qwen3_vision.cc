#include "models/qwen3_vision.h"

#include "models/blocks.h"

namespace maxport::models {
namespace {

void add_blocks(ParameterMap& map, const LayerGroup& blocks) {
  add_layer_norm(map, blocks, "ln1", "norm1", "vision_emb");
  for (const auto& [part, number] : {std::pair{"query", 0}, {"key", 1}, {"value", 2}}) {
    map.add(blocks, fmt::format("attn.attn.{}.kernel", part), "attn.qkv.weight",
            fmt::format("(@{}/3 vision_heads vision_dim) vision_emb -> vision_emb vision_heads vision_dim", number));
    map.add(blocks, fmt::format("attn.attn.{}.bias", part), "attn.qkv.bias",
            fmt::format("(@{}/3 vision_heads vision_dim) -> vision_heads vision_dim", number));
  }
  map.add(blocks, "attn.attn.out.kernel", "attn.proj.weight",
          "vision_emb (vision_heads vision_dim) -> vision_heads vision_dim vision_emb");
  map.add(blocks, "attn.attn.out.bias", "attn.proj.bias", "vision_emb -> vision_emb");
  add_layer_norm(map, blocks, "ln2", "norm2", "vision_emb");
  add_linear(map, blocks, "mlp", "mlp.linear_fc1", "vision_emb", "vision_mlp");
  add_linear(map, blocks, "mlp_out", "mlp.linear_fc2", "vision_mlp", "vision_emb");
}

/// The norm of the last merger works on patches, those of the deepstack on patches already joined.
void add_mergers(ParameterMap& map, const LayerGroup& mergers, const Qwen3VisionNames& names,
                 const std::string& normed) {
  add_layer_norm(map, mergers, "ln_q", names.merger_norm, normed);
  add_linear(map, mergers, "mlp_0", names.merger_in, "joined", "merged");
  add_linear(map, mergers, "mlp_2", names.merger_out, "merged", "emb");
}

Result<> read_dimensions(const huggingface::ConfigRoles& vision, Dimensions& dims) {
  MAXPORT_RETURN_IF_ERROR(read_sizes(vision,
                                     {{"vision_blocks", "num_hidden_layers"},
                                      {"vision_emb", "hidden_size"},
                                      {"vision_heads", "num_attention_heads"},
                                      {"vision_dim", "head_dim"},
                                      {"vision_mlp", "intermediate_size"},
                                      {"color", "in_channels"},
                                      {"frame", "temporal_patch_size"},
                                      {"patch_height", "patch_size"},
                                      {"patch_width", "patch_size"},
                                      {"merge", "spatial_merge_size"},
                                      {"vision_out", "out_hidden_size"},
                                      {"positions", "num_position_embeddings"}},
                                     dims));
  const auto size = [&](std::string_view name) { return dims.get(name).value(); };
  if (size("vision_out") != size("emb"))
    return fail(ErrorKind::kCorruptData, "{} is {}, but the decoder's hidden_size is {}",
                vision.source_of("out_hidden_size"), size("vision_out"), size("emb"));
  if (size("merge") > 256)
    return fail(ErrorKind::kResourceLimit, "{} is {}, more than the limit of 256",
                vision.source_of("spatial_merge_size"), size("merge"));
  dims.set("joined", size("vision_emb") * size("merge") * size("merge"));
  dims.set("merged", size("joined"));
  return {};
}

}  // namespace

Result<> add_qwen3_vision(const ModelContext& context, ParameterMap& map, std::string_view section,
                          const Qwen3VisionNames& names) {
  MAXPORT_ASSIGN_OR_RETURN(const auto vision, context.config.section(section));
  if (!vision)
    return fail(ErrorKind::kInvalidArgument, "use_multimodal is true, but the configuration has no {}", section);
  MAXPORT_RETURN_IF_ERROR(read_dimensions(*vision, map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const auto deepstack, vision->integers("deepstack_visual_indexes"));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t block_count, map.dimensions.get("vision_blocks"));

  const std::string encoder = "vision_encoder." + names.encoder;
  map.add(encoder + ".patch_embed.proj.kernel", names.tower + "patch_embed.proj.weight",
          "vision_emb color frame patch_height patch_width -> frame patch_height patch_width color vision_emb");
  map.add(encoder + ".patch_embed.proj.bias", names.tower + "patch_embed.proj.bias", "vision_emb -> vision_emb");
  map.add(encoder + ".pos_embed_interpolate.pos_embed", names.tower + "pos_embed.weight",
          "positions vision_emb -> positions vision_emb");
  add_blocks(map, {encoder + ".blocks_{layer}", names.tower + "blocks.{layer}", 0, {{block_count, 1}}, false});
  if (!deepstack.empty()) {
    const auto count = static_cast<int64_t>(deepstack.size());
    add_mergers(
        map, {encoder + ".merger_{layer}", names.tower + names.deepstack_mergers + ".{layer}", 0, {{count, 1}}, false},
        names, "joined");
  }
  add_mergers(map, {"vision_encoder." + names.projector + ".merger", names.tower + "merger", 0, {}, false}, names,
              "vision_emb");
  return {};
}

}  // namespace maxport::models
