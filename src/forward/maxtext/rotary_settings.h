// Rotary embeddings as MaxText chooses and computes them (layers/attentions.py, layers/embeddings.py of MaxText 0.2.5).
#pragma once

#include <optional>

#include "forward/rotary.h"
#include "maxtext/settings.h"

namespace maxport::forward {

struct MaxtextRotaryRequest {
  int64_t head_dim = 0;                              ///< of a head, or of the part of it that turns (MLA)
  bool local = false;                                ///< a layer with a sliding window
  bool hybrid = false;                               ///< qwen3_next and qwen3_5: always partial
  std::optional<double> max_timescale = {};          ///< instead of rope_max_timescale
  std::optional<double> partial_rotary_factor = {};  ///< given to the attention by the layer (gemma4)
};

Result<Rotary> maxtext_rotary(const maxtext::Settings& settings, const MaxtextRotaryRequest& request);

}  // namespace maxport::forward
