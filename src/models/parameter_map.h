// A model's parameter map: which Hugging Face tensors hold which MaxText parameters, as rules.
//
// A family writes its rules once, layer group by layer group; both directions, every check and every report follow from
// them. Rules are data: nothing here reads a tensor or loops over tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "models/pattern.h"

namespace maxport::models {

/// The one arithmetic step a parameter may take on its way (hooks.md 3). Each direction is a single float32 operation
/// followed by one rounding to the target type.
struct Arithmetic {
  enum class Kind { kCopy, kMultiply, kAdd };
  Kind kind = Kind::kCopy;
  float to_maxtext = 0;      ///< factor or summand towards MaxText
  float to_huggingface = 0;  ///< factor or summand on the way back
  bool keeps_float32 =
      false;         ///< the MaxText leaf is float32 whatever the conversion's type is (norm scales of gemma2, 3)
  std::string name;  ///< what the step is, for reports: "query scale", "norm shift", ...
};

Arithmetic copy();
/// w * to_maxtext, and back by to_huggingface.
Arithmetic multiply(std::string name, float to_maxtext, float to_huggingface);
/// Query scaling by head_dim^-1/2 (hooks.md 3.1): both factors are correctly rounded from float64.
Arithmetic scale_query(int64_t head_dim);
/// RMSNorm weights stored as w in Hugging Face and as 1 + w, in float32, in MaxText (hooks.md 3.3).
Arithmetic shift_norm();
/// Embedding table times sqrt(hidden), a float32; back by the rounded reciprocal of that float32 (hooks.md 3.4).
Arithmetic scale_embedding(int64_t hidden);

/// A run of layers that MaxText stores together. Layer numbers are those of the Hugging Face names.
///
/// Scanned, the layers are stacked along `loops` (outermost first), inserted into each parameter's shape at
/// param_scan_axis; unscanned, each layer is a parameter of its own. The layer at loop position (i0, i1, ...) is
/// first_layer + i0 * loops[0].stride + i1 * loops[1].stride + ...
struct LayerGroup {
  struct Loop {
    int64_t count;
    int64_t stride;
  };
  std::string maxtext;      ///< e.g. "decoder.layers"; unscanned with {layer}, {index} or {number} (position within the
                            ///< group, from 0 or from 1)
  std::string huggingface;  ///< e.g. "model.layers.{layer}"
  int64_t first_layer = 0;
  std::vector<Loop> loops;
  bool stacked = true;

  int64_t layer_count() const;
  /// What `rest` is called in the first layer: asking for it tells how a source spells a name.
  std::string huggingface_name(std::string_view rest) const;
};

/// What one Hugging Face tensor (or one per layer, expert, ...) gives to a parameter.
struct Part {
  std::string huggingface;  ///< name, with {layer} and {index names of the pattern} filled in
  std::string pattern;      ///< see pattern.h
};

struct Rule {
  std::string collection = "params";  ///< first part of the MaxText key
  std::string maxtext;                ///< path below the collection, joined with '.', with {layer}/{index}
  std::vector<Part> parts;            ///< empty for a constant
  Arithmetic arithmetic;
  std::optional<LayerGroup> layers;
  /// Axis at which the layers are stacked, where it is not param_scan_axis (collections other than "params": 0).
  std::optional<int64_t> stack_axis;
  /// Value of target elements that no part fills (vocabulary padding), or of the whole constant.
  std::optional<float> fill;
  /// Target shape of a constant, as the right side of a pattern.
  std::string constant_shape;
  /// Source elements that no part uses are dropped on purpose; says why ("vocabulary rows beyond the model's").
  std::string drops;
};

/// Source tensors that are left out on purpose, by name.
struct IgnoreRule {
  std::string name_pattern;  ///< '*' stands for any characters
  std::string reason;        ///< shown in the account
};

/// Two source tensors that must hold the same values, because the model has only one place for both. Towards Hugging
/// Face `dropped` is written as a copy of `kept`.
struct EqualTensors {
  std::string kept;
  std::string dropped;
  std::string reason;
};

class ParameterMap {
 public:
  Dimensions dimensions;
  int64_t param_scan_axis = 1;
  std::vector<Rule> rules;
  std::vector<IgnoreRule> ignored;
  /// Source tensors that have no place and are not left out silently either: what the refusal explains.
  std::vector<IgnoreRule> surplus;
  std::vector<EqualTensors> equal;
  std::vector<std::string> notes;  ///< decisions that a user should see, one sentence each

  /// A parameter outside the layers. `maxtext` is the path below "params", e.g. "decoder.decoder_norm.scale".
  Rule& add(std::string maxtext, std::string huggingface, std::string pattern, Arithmetic arithmetic = {});
  /// A parameter of each layer of the group; both names are continued after the group's own.
  Rule& add(const LayerGroup& layers, std::string maxtext, std::string huggingface, std::string pattern,
            Arithmetic arithmetic = {});
  /// The same, made of several Hugging Face tensors.
  Rule& add(const LayerGroup& layers, std::string maxtext, std::vector<Part> parts, Arithmetic arithmetic = {});
  /// A parameter that no Hugging Face tensor holds; dropped on the way back.
  Rule& add_constant(const LayerGroup& layers, std::string maxtext, std::string shape, float value);

  void ignore(std::string name_pattern, std::string reason);
  /// The reason why a source tensor is left out, if a rule says so.
  const IgnoreRule* find_ignored(std::string_view name) const;
};

/// True when `text` matches `pattern`, in which '*' stands for any run of characters.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace maxport::models
