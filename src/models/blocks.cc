#include "models/blocks.h"

namespace maxport::models {

void add_gated_mlp(ParameterMap& map, const LayerGroup& layers, const std::string& maxtext,
                   const std::string& huggingface, const std::string& width) {
  const std::string in = width + " emb -> emb " + width, out = "emb " + width + " -> " + width + " emb";
  map.add(layers, maxtext + ".wi_0.kernel", huggingface + ".gate_proj.weight", in);
  map.add(layers, maxtext + ".wi_1.kernel", huggingface + ".up_proj.weight", in);
  map.add(layers, maxtext + ".wo.kernel", huggingface + ".down_proj.weight", out);
}

void add_layer_norm(ParameterMap& map, const LayerGroup& layers, const std::string& maxtext,
                    const std::string& huggingface, const std::string& size) {
  map.add(layers, maxtext + ".scale", huggingface + ".weight", size + " -> " + size);
  map.add(layers, maxtext + ".bias", huggingface + ".bias", size + " -> " + size);
}

void add_linear(ParameterMap& map, const LayerGroup& layers, const std::string& maxtext, const std::string& huggingface,
                const std::string& in, const std::string& out) {
  map.add(layers, maxtext + ".kernel", huggingface + ".weight", fmt::format("{1} {0} -> {0} {1}", in, out));
  map.add(layers, maxtext + ".bias", huggingface + ".bias", out + " -> " + out);
}

namespace {

/// The form that the source has in the group's first layer. Where a joined tensor has a shape that both orders allow,
/// `published` decides.
Result<ExpertTensors> form_in_source(const ModelContext& context, const ParameterMap& map, const LayerGroup& layers,
                                     const std::string& huggingface, ExpertTensors published) {
  if (context.source_has(layers.huggingface_name(huggingface + ".0.gate_proj.weight"))) return ExpertTensors::kSingle;
  const std::string joined = layers.huggingface_name(huggingface + ".gate_up_proj");
  if (!context.source_has(joined)) return published;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t emb, map.dimensions.get("emb"));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t mlp, map.dimensions.get("expert_mlp"));
  if (published == ExpertTensors::kSingle) published = ExpertTensors::kJoined;
  const auto shape = context.source->shape(joined);
  if (!shape || shape->size() != 3 || emb == 2 * mlp) return published;
  return (*shape)[1] == emb ? ExpertTensors::kTransposed : ExpertTensors::kJoined;
}

}  // namespace

Result<> add_experts(const ModelContext& context, ParameterMap& map, const LayerGroup& layers,
                     const std::string& maxtext, const std::string& huggingface, ExpertTensors published) {
  MAXPORT_ASSIGN_OR_RETURN(const ExpertTensors form, form_in_source(context, map, layers, huggingface, published));
  const std::string one = huggingface + ".{expert}", gate_up = huggingface + ".gate_up_proj",
                    down = huggingface + ".down_proj";
  switch (form) {
    case ExpertTensors::kSingle:
      map.add(layers, maxtext + ".wi_0", one + ".gate_proj.weight", "expert_mlp emb -> expert emb expert_mlp");
      map.add(layers, maxtext + ".wi_1", one + ".up_proj.weight", "expert_mlp emb -> expert emb expert_mlp");
      map.add(layers, maxtext + ".wo", one + ".down_proj.weight", "emb expert_mlp -> expert expert_mlp emb");
      break;
    case ExpertTensors::kJoined:
      map.add(layers, maxtext + ".wi_0", gate_up, "expert (@0/2 expert_mlp) emb -> expert emb expert_mlp");
      map.add(layers, maxtext + ".wi_1", gate_up, "expert (@1/2 expert_mlp) emb -> expert emb expert_mlp");
      map.add(layers, maxtext + ".wo", down, "expert emb expert_mlp -> expert expert_mlp emb");
      break;
    case ExpertTensors::kTransposed:
      map.add(layers, maxtext + ".wi_0", gate_up, "expert emb (@0/2 expert_mlp) -> expert emb expert_mlp");
      map.add(layers, maxtext + ".wi_1", gate_up, "expert emb (@1/2 expert_mlp) -> expert emb expert_mlp");
      map.add(layers, maxtext + ".wo", down, "expert expert_mlp emb -> expert expert_mlp emb");
      break;
  }
  return {};
}

}  // namespace maxport::models
