// Qwen3-Omni: the thinker, that is the Qwen3 decoder with experts below a vision and an audio tower. The talker, which
// speaks, has no place in MaxText.
#include "models/families.h"
#include "models/qwen3_layers.h"
#include "models/qwen3_vision.h"

namespace maxport::models {
namespace {

constexpr int64_t kKernel = 3;  // of each of the three convolutions, which halve the spectrogram's height

void add_convolutions(ParameterMap& map, const LayerGroup& encoder) {
  map.add(encoder, "conv2d1.kernel", "conv2d1.weight", "conv 1 rows columns -> rows columns 1 conv");
  map.add(encoder, "conv2d2.kernel", "conv2d2.weight", "conv conv_in rows columns -> rows columns conv_in conv");
  map.add(encoder, "conv2d3.kernel", "conv2d3.weight", "conv conv_in rows columns -> rows columns conv_in conv");
  for (const char* name : {"conv2d1.bias", "conv2d2.bias", "conv2d3.bias"})
    map.add(encoder, name, name, "conv -> conv");
  map.add(encoder, "conv_out.kernel", "conv_out.weight", "audio_emb conv_out -> conv_out audio_emb");
}

void add_audio_layers(ParameterMap& map, const LayerGroup& layers) {
  add_layer_norm(map, layers, "input_layer_norm", "self_attn_layer_norm", "audio_emb");
  for (const auto& [maxtext, huggingface] : {std::pair{"query", "q_proj"}, {"key", "k_proj"}, {"value", "v_proj"}}) {
    map.add(layers, fmt::format("self_attention_audio.{}.kernel", maxtext),
            fmt::format("self_attn.{}.weight", huggingface),
            "(audio_heads audio_dim) audio_emb -> audio_emb audio_heads audio_dim");
    map.add(layers, fmt::format("self_attention_audio.{}.bias", maxtext), fmt::format("self_attn.{}.bias", huggingface),
            "(audio_heads audio_dim) -> audio_heads audio_dim");
  }
  map.add(layers, "self_attention_audio.out.kernel", "self_attn.out_proj.weight",
          "audio_emb (audio_heads audio_dim) -> audio_heads audio_dim audio_emb");
  map.add(layers, "self_attention_audio.out.bias", "self_attn.out_proj.bias", "audio_emb -> audio_emb");
  add_layer_norm(map, layers, "post_attention_layer_norm", "final_layer_norm", "audio_emb");
  add_linear(map, layers, "AudioMLP.wi", "fc1", "audio_emb", "audio_mlp");
  add_linear(map, layers, "AudioMLP.wo", "fc2", "audio_mlp", "audio_emb");
}

Result<> read_audio_dimensions(const huggingface::ConfigRoles& audio, Dimensions& dims) {
  MAXPORT_RETURN_IF_ERROR(read_sizes(audio,
                                     {{"audio_layers", "num_hidden_layers"},
                                      {"audio_emb", "hidden_size"},
                                      {"audio_heads", "num_attention_heads"},
                                      {"audio_dim", "head_dim"},
                                      {"audio_mlp", "intermediate_size"},
                                      {"conv", "downsample_hidden_size"},
                                      {"mel_bins", "num_mel_bins"},
                                      {"audio_out", "output_dim"}},
                                     dims));
  const auto size = [&](std::string_view name) { return dims.get(name).value(); };
  if (size("audio_out") != size("emb"))
    return fail(ErrorKind::kCorruptData, "{} is {}, but the decoder's hidden_size is {}", audio.source_of("output_dim"),
                size("audio_out"), size("emb"));
  int64_t height = size("mel_bins");
  for (int convolution = 0; convolution < 3; ++convolution) height = (height + 1) / 2;
  dims.set("rows", kKernel);
  dims.set("columns", kKernel);
  dims.set("conv_in", size("conv"));
  dims.set("conv_out", size("conv") * height);
  dims.set("projected", size("audio_emb"));
  return {};
}

Result<> add_audio(const ModelContext& context, ParameterMap& map) {
  MAXPORT_ASSIGN_OR_RETURN(const auto audio, context.config.section("thinker_config.audio_config"));
  if (!audio) return fail(ErrorKind::kInvalidArgument, "use_audio is true, but the configuration has no audio_config");
  MAXPORT_RETURN_IF_ERROR(read_audio_dimensions(*audio, map.dimensions));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layer_count, map.dimensions.get("audio_layers"));
  const std::string maxtext = "audio_encoder.Qwen3OmniAudioEncoder_0", tower = "thinker.audio_tower";
  const LayerGroup encoder{maxtext, tower, 0, {}, false};
  add_convolutions(map, encoder);
  add_audio_layers(map, {maxtext + ".layers_{layer}", tower + ".layers.{layer}", 0, {{layer_count, 1}}, false});
  add_layer_norm(map, encoder, "layernorm_post", "ln_post", "audio_emb");
  const LayerGroup projector{"audio_encoder.Qwen3OmniAudioProjector_0", tower, 0, {}, false};
  add_linear(map, projector, "proj1", "proj1", "audio_emb", "projected");
  add_linear(map, projector, "proj2", "proj2", "projected", "emb");
  return {};
}

}  // namespace

Result<ParameterMap> qwen3_omni(const ModelContext& context) {
  ParameterMap map;
  MAXPORT_RETURN_IF_ERROR(
      add_qwen3_decoder(context, map, "Qwen3-Omni", {.text = "thinker.model.", .head = "thinker.lm_head.weight"}));
  if (context.layout.use_multimodal)
    MAXPORT_RETURN_IF_ERROR(add_qwen3_vision(context, map, "thinker_config.vision_config",
                                             {.encoder = "Qwen3OmniMoeVisionEncoder_0",
                                              .projector = "Qwen3OmniMoeVisionProjector_0",
                                              .tower = "thinker.visual.",
                                              .deepstack_mergers = "merger_list",
                                              .merger_norm = "ln_q",
                                              .merger_in = "mlp.0",
                                              .merger_out = "mlp.2"}));
  else
    map.ignore("thinker.visual.*", "vision; use_multimodal is false");
  if (context.layout.use_multimodal && context.layout.use_audio)
    MAXPORT_RETURN_IF_ERROR(add_audio(context, map));
  else
    map.ignore("thinker.audio_tower.*", "audio; use_multimodal or use_audio is false");
  for (const char* part : {"talker.*", "code2wav.*"}) map.ignore(part, "speech output; MaxText's model has none");
  return map;
}

}  // namespace maxport::models
