#include "maxtext/derived_settings.h"

namespace maxport::maxtext {
namespace {

using huggingface::ConfigRoles;
using Copy = std::pair<std::string_view, std::string_view>;

constexpr Copy kEveryVision[] = {
    {"hidden_size_for_vit", "hidden_size"},
    {"intermediate_size_for_vit", "intermediate_size"},
    {"num_hidden_layers_for_vit", "num_hidden_layers"},
    {"num_attention_heads_for_vit", "num_attention_heads"},
    {"patch_size_for_vit", "patch_size"},
};

constexpr Copy kQwenVision[] = {
    {"num_channels_for_vit", "in_channels"},
    {"temporal_patch_size_for_vit", "temporal_patch_size"},
    {"spatial_merge_size_for_vit", "spatial_merge_size"},
    {"out_hidden_size_for_vit", "out_hidden_size"},
    {"num_position_embeddings_for_vit", "num_position_embeddings"},
};

constexpr Copy kAudio[] = {
    {"d_model_for_audio", "d_model"},
    {"encoder_layers_for_audio", "encoder_layers"},
    {"encoder_attention_heads_for_audio", "encoder_attention_heads"},
    {"encoder_ffn_dim_for_audio", "encoder_ffn_dim"},
    {"max_source_positions_for_audio", "max_source_positions"},
    {"num_mel_bins_for_audio", "num_mel_bins"},
    {"downsample_hidden_size_for_audio", "downsample_hidden_size"},
    {"output_dim_for_audio", "output_dim"},
    {"attention_dropout_for_audio", "attention_dropout"},
    {"n_window_for_audio", "n_window"},
    {"n_window_infer_for_audio", "n_window_infer"},
    {"conv_chunksize_for_audio", "conv_chunksize"},
};

Result<std::optional<ConfigRoles>> section(const SettingsBuilder& builder, std::string_view name) {
  const bool thinker = builder.config.root().contains("thinker_config");
  return builder.config.section((thinker ? "thinker_config." : "") + std::string(name));
}

Result<> copy_all(SettingsBuilder& builder, const ConfigRoles& from, std::span<const Copy> copies) {
  for (const auto& [key, role] : copies) MAXPORT_RETURN_IF_ERROR(builder.copy_from(from, key, role));
  return {};
}

Result<> set_qwen_vision(SettingsBuilder& builder, const ConfigRoles& vision) {
  // The configuration leaves the picture's size open; this is what MaxText prepares pictures for.
  builder.set("image_size_for_vit", 768);
  MAXPORT_RETURN_IF_ERROR(copy_all(builder, vision, kQwenVision));
  std::vector<int64_t> indexes;
  if (vision.has("deepstack_visual_indexes")) {
    MAXPORT_ASSIGN_OR_RETURN(indexes, vision.integers("deepstack_visual_indexes"));
  }
  builder.set("deepstack_visual_indexes_for_vit", indexes);
  return {};
}

Result<> set_gemma_vision(SettingsBuilder& builder, const ConfigRoles& vision) {
  MAXPORT_RETURN_IF_ERROR(builder.copy_from(vision, "conv_stride_for_vit", "patch_size"));
  if (builder.facts.rope == RopeStyle::kLocalGlobal) {
    MAXPORT_RETURN_IF_ERROR(builder.copy_from(vision, "image_size_for_vit", "image_size"));
    return builder.copy_from(vision, "num_channels_for_vit", "in_channels");
  }
  builder.set("image_size_for_vit", Json::array({672, 960}));
  builder.set("num_channels_for_vit", 3);
  MAXPORT_RETURN_IF_ERROR(builder.copy_from(vision, "num_position_embeddings_for_vit", "position_embedding_size"));
  MAXPORT_RETURN_IF_ERROR(builder.copy_from(vision, "vision_output_length", "default_output_length"));
  auto rope = vision.rope();
  if (rope) builder.set("rope_theta_for_vit", rope->theta);
  return {};
}

}  // namespace

Result<> derive_vision(SettingsBuilder& builder) {
  builder.set("use_multimodal", builder.request.use_multimodal);
  if (!builder.request.use_multimodal || builder.facts.vision_encoder_block.empty()) return {};
  MAXPORT_ASSIGN_OR_RETURN(auto vision, section(builder, "vision_config"));
  if (!vision)
    return fail(ErrorKind::kNotFound, "use_multimodal=true, but the configuration has no vision_config; leave the setting out");
  builder.set("vision_encoder_block", builder.facts.vision_encoder_block);
  MAXPORT_RETURN_IF_ERROR(copy_all(builder, *vision, kEveryVision));
  const bool gemma = builder.facts.family.starts_with("gemma");
  return gemma ? set_gemma_vision(builder, *vision) : set_qwen_vision(builder, *vision);
}

Result<> derive_audio(SettingsBuilder& builder) {
  if (builder.facts.family != "qwen3-omni") return {};
  const bool wanted = builder.request.use_multimodal && builder.request.use_audio;
  builder.set("use_audio", wanted);
  const Json* thinker = huggingface::object_at(builder.config.root(), "thinker_config");
  if (thinker && thinker->contains("position_id_per_seconds"))
    builder.set("position_id_per_seconds", thinker->at("position_id_per_seconds"));
  if (!wanted) return {};
  MAXPORT_ASSIGN_OR_RETURN(auto audio, section(builder, "audio_config"));
  if (!audio)
    return fail(ErrorKind::kNotFound, "use_audio=true, but the configuration has no audio_config; leave the setting out");
  return copy_all(builder, *audio, kAudio);
}

}  // namespace maxport::maxtext
