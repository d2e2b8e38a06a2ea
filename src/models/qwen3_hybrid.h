// Layers that Qwen3-Next and Qwen3.5 share: gated attention in every `period`-th layer, gated delta networks in the
// others, and in all of them routed experts beside one shared expert.
#pragma once

#include "models/blocks.h"

namespace maxport::models {

/// Sizes of attention, delta networks and experts from the configuration; refuses what MaxText's layers cannot do.
Result<> read_hybrid_dimensions(const huggingface::ConfigRoles& config, std::string_view model, Dimensions& dimensions);
/// Number of layers from one full attention to the next; "layer_types" must agree with it.
Result<int64_t> read_hybrid_period(const huggingface::ConfigRoles& config);

void add_hybrid_norms(ParameterMap& map, const LayerGroup& layers);
/// Grouped-query attention whose query projection also yields a gate for the output of each head.
void add_gated_attention(ParameterMap& map, const LayerGroup& layers);
/// A gated delta network but for its input projections: convolution, decay, output.
void add_delta_network(ParameterMap& map, const LayerGroup& layers);
Result<> add_hybrid_experts(const ModelContext& context, ParameterMap& map, const LayerGroup& layers,
                            ExpertTensors published);

}  // namespace maxport::models
