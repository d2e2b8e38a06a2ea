// Blocks of layers that several families share to the letter. What differs between families stays in their own files.
#pragma once

#include <string>

#include "models/family.h"

namespace maxport::models {

/// down(act(gate(x)) * up(x)): "<maxtext>.wi_0|wi_1|wo.kernel" from "<huggingface>.gate_proj|up_proj|down_proj.weight".
/// `width` is the index of the inner size; the outer one is "emb".
void add_gated_mlp(ParameterMap& map, const LayerGroup& layers, const std::string& maxtext,
                   const std::string& huggingface, const std::string& width);

/// LayerNorm: "<maxtext>.scale|bias" from "<huggingface>.weight|bias".
void add_layer_norm(ParameterMap& map, const LayerGroup& layers, const std::string& maxtext,
                    const std::string& huggingface, const std::string& size);

/// A linear layer with bias: "<maxtext>.kernel|bias" from "<huggingface>.weight|bias".
void add_linear(ParameterMap& map, const LayerGroup& layers, const std::string& maxtext, const std::string& huggingface,
                const std::string& in, const std::string& out);

/// How a file stores the projections of all experts of a layer.
enum class ExpertTensors {
  kSingle,      ///< one by one: "experts.7.gate_proj.weight" [mlp, emb], "up_proj", "down_proj" [emb, mlp]
  kJoined,      ///< "experts.gate_up_proj" [experts, gate then up, emb], "experts.down_proj" [experts, emb, mlp]
  kTransposed,  ///< the same with the last two axes swapped
};

/// Routed experts with gated MLPs: "<maxtext>.wi_0|wi_1|wo", experts first, from "<huggingface>.*"; sizes "expert",
/// "emb", "expert_mlp". `published` is the form of published checkpoints; the source decides when there is one.
Result<> add_experts(const ModelContext& context, ParameterMap& map, const LayerGroup& layers,
                     const std::string& maxtext, const std::string& huggingface, ExpertTensors published);

}  // namespace maxport::models
