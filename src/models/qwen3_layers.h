// The decoder of Qwen3, alone or below the towers of its multimodal relatives: grouped-query attention with normed
// queries and keys, and SwiGLU or a mixture of such.
#pragma once

#include <string>

#include "models/blocks.h"

namespace maxport::models {

/// How one model's files call the parts.
struct Qwen3Names {
  std::string text;  ///< prefix of embedding, norm and layers with its dot, e.g. "model."; may be empty
  std::string head = "lm_head.weight";
  std::string query = "q_proj", key = "k_proj", value = "v_proj", out = "o_proj";
  std::string query_norm = "q_norm", key_norm = "k_norm";
  ExpertTensors experts = ExpertTensors::kSingle;  ///< form of published checkpoints with experts
};

/// The whole decoder with embedding and head. With "num_experts" above 0 every layer has experts.
Result<> add_qwen3_decoder(const ModelContext& context, ParameterMap& map, std::string_view model,
                           const Qwen3Names& names);

}  // namespace maxport::models
