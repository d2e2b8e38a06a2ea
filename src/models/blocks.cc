#include "models/blocks.h"

namespace maxport::models {

void add_gated_mlp(ParameterMap& map, const LayerGroup& layers, const std::string& maxtext,
                   const std::string& huggingface, const std::string& width) {
  const std::string in = width + " emb -> emb " + width, out = "emb " + width + " -> " + width + " emb";
  map.add(layers, maxtext + ".wi_0.kernel", huggingface + ".gate_proj.weight", in);
  map.add(layers, maxtext + ".wi_1.kernel", huggingface + ".up_proj.weight", in);
  map.add(layers, maxtext + ".wo.kernel", huggingface + ".down_proj.weight", out);
}

void add_experts(const ModelContext& context, ParameterMap& map, const LayerGroup& layers, const std::string& maxtext,
                 const std::string& huggingface, bool fused) {
  if (context.source_has(layers.huggingface_name(huggingface + ".gate_up_proj"))) fused = true;
  if (context.source_has(layers.huggingface_name(huggingface + ".0.gate_proj.weight"))) fused = false;
  if (fused) {
    map.add(layers, maxtext + ".wi_0", huggingface + ".gate_up_proj", "expert (@0/2 expert_mlp) emb -> expert emb expert_mlp");
    map.add(layers, maxtext + ".wi_1", huggingface + ".gate_up_proj", "expert (@1/2 expert_mlp) emb -> expert emb expert_mlp");
    map.add(layers, maxtext + ".wo", huggingface + ".down_proj", "expert emb expert_mlp -> expert expert_mlp emb");
    return;
  }
  const std::string one = huggingface + ".{expert}";
  map.add(layers, maxtext + ".wi_0", one + ".gate_proj.weight", "expert_mlp emb -> expert emb expert_mlp");
  map.add(layers, maxtext + ".wi_1", one + ".up_proj.weight", "expert_mlp emb -> expert emb expert_mlp");
  map.add(layers, maxtext + ".wo", one + ".down_proj.weight", "emb expert_mlp -> expert expert_mlp emb");
}

}  // namespace maxport::models
