// A config.json read by role instead of by spelling.
//
// A role is named by its usual spelling ("num_hidden_layers"); the table in config_fields.h knows the others. Values
// come from the object that describes the decoder, which multimodal configs nest ("text_config",
// "thinker_config.text_config"). null counts as absent. Every answer can be traced: source_of() tells the path of the
// field, the formula, or the class default it came from. All methods are const and safe from several threads; copies
// share the document.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "huggingface/rope.h"

namespace maxport::huggingface {

/// Whether output head and embedding are one weight, and how that was decided.
struct TiedHead {
  bool tied = false;
  std::string source;  ///< e.g. "text_config.tie_word_embeddings", or "no head in the files"
};

/// A quantisation that has a mapping here.
struct Quantization {
  std::string method;  ///< "fp8" or "mxfp4"
  std::string source;  ///< path of the object in the config
  Json config;
};

/// The object at a dotted path ("" for the root), or null when any step is absent or no object.
const Json* object_at(const Json& root, std::string_view dotted_path);

class ConfigRoles {
 public:
  /// Checks kinds and ranges of the known fields at once, so that a hostile number stops here. `what` names the
  /// document in messages. Fails with kCorruptData, kInvalidArgument for fields that contradict each other, or
  /// kResourceLimit above a documented cap.
  static Result<ConfigRoles> create(Json config, std::string what);

  const Json& root() const { return *document_; }
  /// The object that describes the decoder; the root itself when nothing is nested.
  const Json& section_json() const { return *section_; }
  /// "", "text_config", "thinker_config.text_config" or what section() was asked for.
  const std::string& section_path() const { return section_path_; }
  /// The same questions asked of another object, e.g. "vision_config" or "thinker_config.vision_config"; nothing when
  /// it is absent or null.
  Result<std::optional<ConfigRoles>> section(std::string_view dotted_path) const;

  /// Of the outermost level, e.g. "gemma3".
  std::string model_type() const;
  /// Of this section, e.g. "gemma3_text"; the outermost one when the section has none.
  std::string section_model_type() const;
  /// As listed; may be empty.
  std::vector<std::string> architectures() const;

  /// True when the field is there in any spelling and not null (derived values and defaults do not count).
  bool has(std::string_view role) const;

  // An absent field is kNotFound, for the optional forms nothing. The roles "head_dim" (hidden_size /
  // num_attention_heads) and "num_key_value_heads" (num_attention_heads) are derived when absent.
  Result<int64_t> integer(std::string_view role) const;
  Result<std::optional<int64_t>> optional_integer(std::string_view role) const;
  Result<int64_t> integer_or(std::string_view role, int64_t fallback) const;
  Result<double> number(std::string_view role) const;
  Result<std::optional<double>> optional_number(std::string_view role) const;
  Result<double> number_or(std::string_view role, double fallback) const;
  Result<bool> boolean(std::string_view role) const;
  Result<std::optional<bool>> optional_boolean(std::string_view role) const;
  Result<bool> boolean_or(std::string_view role, bool fallback) const;
  Result<std::string> text(std::string_view role) const;
  Result<std::optional<std::string>> optional_text(std::string_view role) const;
  Result<std::vector<int64_t>> integers(std::string_view role) const;
  Result<std::vector<std::string>> texts(std::string_view role) const;
  /// One entry a layer (length checked against num_hidden_layers), or empty when the config lists none.
  Result<std::vector<std::string>> layer_types() const;

  /// Where the value of a role comes from: "text_config.head_dim", "hidden_size / num_attention_heads", "default of
  /// gemma3_text in transformers", or "absent".
  std::string source_of(std::string_view role) const;

  /// Rotary settings, from rope_parameters or from rope_theta and rope_scaling; where both are given they must agree.
  /// `layer_type` ("full_attention", "sliding_attention") selects where a config has several.
  Result<Rope> rope(std::string_view layer_type = {}) const;

  /// By the key tie_word_embeddings if any level has it (levels that disagree are an error), else by whether the files
  /// hold an output head.
  Result<TiedHead> tied_head(bool head_in_files) const;

  /// Nothing for a plain model; kUnsupported, in one line that names the method, for one that has no mapping here.
  Result<std::optional<Quantization>> quantization() const;

  /// The edge of the square blocks of a weight that share a scale: weight_block_size of the quantization, by default 128.
  Result<int64_t> weight_block_size() const;

  /// Oddities worth a line in a report, e.g. code that the config points at (never run).
  std::vector<std::string> notes() const;

 private:
  struct Found {
    const Json* value = nullptr;  ///< null when absent
    std::string source;
    bool stated_null = false;
  };

  ConfigRoles() = default;
  Result<> check_fields() const;
  Result<Found> find(std::string_view role) const;
  Result<std::optional<int64_t>> derived_integer(std::string_view role) const;
  std::string path_of(std::string_view key) const;
  Result<std::optional<TiedHead>> stated_tie() const;

  std::shared_ptr<const Json> document_;
  const Json* section_ = nullptr;  // inside *document_
  std::string section_path_;
  std::string what_;
};

}  // namespace maxport::huggingface
