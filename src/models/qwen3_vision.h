// The vision tower of the Qwen3 models with pictures: patches of several frames, blocks with joined query-key-value
// projections, and mergers that join neighbouring patches and project them to the decoder's width. Deepstack mergers
// do so for the output of chosen blocks.
#pragma once

#include <string>

#include "models/family.h"

namespace maxport::models {

/// How one model calls the parts.
struct Qwen3VisionNames {
  std::string encoder;    ///< MaxText's, below "vision_encoder", e.g. "Qwen3VLVisionEncoder_0"
  std::string projector;  ///< likewise, e.g. "Qwen3VLVisionProjector_0"
  std::string tower;      ///< Hugging Face prefix with its dot, e.g. "model.visual."; may be empty
  std::string deepstack_mergers = "deepstack_merger_list";
  std::string merger_norm = "norm";
  std::string merger_in = "linear_fc1";
  std::string merger_out = "linear_fc2";
};

/// `section`: where the configuration describes the tower, e.g. "vision_config".
Result<> add_qwen3_vision(const ModelContext& context, ParameterMap& map, std::string_view section,
                          const Qwen3VisionNames& names);

}  // namespace maxport::models
