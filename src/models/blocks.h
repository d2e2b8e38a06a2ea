// Blocks of layers that several families share to the letter. What differs between families stays in their own files.
#pragma once

#include <string>

#include "models/family.h"

namespace maxport::models {

/// down(act(gate(x)) * up(x)): "<maxtext>.wi_0|wi_1|wo.kernel" from "<huggingface>.gate_proj|up_proj|down_proj.weight".
/// `width` is the index of the inner size; the outer one is "emb".
void add_gated_mlp(ParameterMap& map, const LayerGroup& layers, const std::string& maxtext,
                   const std::string& huggingface, const std::string& width);

/// Routed experts with gated MLPs: "<maxtext>.wi_0|wi_1|wo", experts first; sizes "expert", "emb", "expert_mlp".
///
/// Files hold one tensor an expert and projection ("<huggingface>.7.gate_proj.weight"), or all experts in one with gate
/// and up joined ("<huggingface>.gate_up_proj" [experts, gate then up, emb], "<huggingface>.down_proj"). `fused` says
/// which form published checkpoints have; the names in the source decide when there is one.
void add_experts(const ModelContext& context, ParameterMap& map, const LayerGroup& layers, const std::string& maxtext,
                 const std::string& huggingface, bool fused);

}  // namespace maxport::models
