// What the Gemma 4 families share.
#pragma once

#include "models/family.h"

namespace maxport::models {

/// Every sixth layer, or with the smallest model every fifth, attends to the whole context and has sizes of its own:
/// `stated` ("global_head_dim"), or what "per_layer_config" says of `role` ("head_dim") for single layers, or else the
/// same as in all layers.
Result<int64_t> gemma4_global_size(const huggingface::ConfigRoles& config, std::string_view stated,
                                   std::string_view role);

/// Leaves out the audio tower, and the vision tower unless use_multimodal.
void gemma4_ignore_towers(const ModelContext& context, ParameterMap& map);

}  // namespace maxport::models
