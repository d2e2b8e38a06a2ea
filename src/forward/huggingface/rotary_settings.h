// Rotary embeddings as transformers derives them from a configuration (modeling_rope_utils).
#pragma once

#include "forward/rotary.h"
#include "huggingface/config_roles.h"

namespace maxport::forward {

/// For heads (or their rotary part) of `head_dim` elements; `layer_type` as in ConfigRoles::rope. kUnsupported names a
/// scaling that no forward pass here knows.
Result<Rotary> huggingface_rotary(const huggingface::ConfigRoles& config, std::string_view layer_type,
                                  int64_t head_dim);

}  // namespace maxport::forward
