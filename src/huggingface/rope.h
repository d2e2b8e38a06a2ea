// Rotary embedding settings of a config.json, in the spellings of several library releases:
//
//   rope_parameters: {"rope_theta": 1e6, "rope_type": "yarn", "factor": 4}         one for all layers
//   rope_parameters: {"full_attention": {...}, "sliding_attention": {...}}         one for each kind of layer
//   rope_theta, rope_scaling: {"rope_type" or "type": ..., "factor": ...}          before release 5
//   rope_local_base_freq                                                           ditto, theta of the local layers
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace maxport::huggingface {

/// Rotary embedding settings of one kind of layer.
struct Rope {
  double theta = 0;
  std::string theta_source;          ///< e.g. "text_config.rope_parameters.rope_theta"
  std::string type = "default";      ///< "default", "linear", "llama3", "yarn", "proportional", ...
  Json parameters = Json::object();  ///< what the type needs besides theta: factor, low_freq_factor, ...
  std::string parameters_source;     ///< empty when there are none
  std::optional<double> partial_rotary_factor;
};

struct RopeQuestion {
  const Json& section;       ///< the object that describes the decoder
  std::string section_path;  ///< its path in the document, empty for the root
  std::string model_type;    ///< of the section, for class defaults
  std::string layer_type;    ///< "", "full_attention" or "sliding_attention"
  std::string what;          ///< names the document in messages
};

/// Settings given in two places must agree (kInvalidArgument showing both). No theta anywhere is kNotFound.
Result<Rope> resolve_rope(const RopeQuestion& question);

}  // namespace maxport::huggingface
