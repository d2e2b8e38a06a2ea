// MaxText's settings as its configuration system would see them for one command line (MaxText 0.2.5).
//
// Four layers, later ones win: the built-in defaults (or the given base.yml with the files it inherits from by
// `base_config`), the file of the model that `model_name` names, `key=value` overrides, and M_<KEY> variables of the
// environment. A key that the model file sets may be overridden with another value only when `override_model_config` is
// true. A model file is looked for beside the given base.yml (models/<name>.yml, ../models/<name>.yml), then among
// the built-in ones. "-Instruct" in a model name is dropped when looking for the file.
//
// Values are JSON: null, boolean, integer, float, string, list or object. Text of overrides and files is read as YAML
// the way MaxText reads it: yes/no/on/off/true/false, ~/null/none, 1_000, 1e-5, [a, b].
//
// Immutable after loading; safe to read from several threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "storage/storage.h"

namespace maxport::maxtext {

enum class SettingOrigin { kDefault, kBaseFile, kModelFile, kCommandLine, kEnvironment };

/// A value and where it came from. `source` is text for messages: a path, "MaxText's defaults", "the model file of
/// llama3.1-8b", "the command line", "the variable M_SCAN_LAYERS".
struct Setting {
  Json value;
  SettingOrigin origin = SettingOrigin::kDefault;
  std::string source;
};

/// One `key=value` word of the command line; `value` is raw text.
struct Override {
  std::string key;
  std::string value;
};

struct SettingsRequest {
  /// The positional .yml, as given. It may not exist; then the built-in defaults stand in for it.
  std::optional<std::string> base_file;
  /// In order; of two with one key the later counts.
  std::vector<Override> overrides;
  /// All variables of the environment, or none to ignore it.
  std::map<std::string, std::string> environment;
};

class Settings {
 public:
  /// Reads files through `storage`. Unknown keys on the command line, values of the wrong type, a model key overridden
  /// without `override_model_config`, an unknown model name and unreadable files are errors. Unknown keys in files are
  /// kept and noted: the file may belong to another release of MaxText.
  static Result<Settings> load(Storage& storage, const SettingsRequest& request);

  /// The value of a known key. Dots reach into nested settings ("lora.lora_rank"). Null values are there, as null.
  const Setting* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// True when the command line or the environment gave it.
  bool given(std::string_view key) const;

  /// Typed access; kInvalidArgument names the key, its value and where that came from. An integer is accepted where a
  /// number is asked for. A null is an error except in the `optional_` forms, and empty text counts as null there.
  Result<bool> boolean(std::string_view key) const;
  Result<int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<std::string> text(std::string_view key) const;
  Result<std::optional<std::string>> optional_text(std::string_view key) const;

  /// The model's name as given ("llama3.1-8b-Instruct"), nothing when it is "default".
  const std::optional<std::string>& model_name() const { return model_name_; }
  /// What loading decided and a user may want to know, one sentence each, e.g. that a base.yml was not found.
  const std::vector<std::string>& notes() const { return notes_; }
  /// All settings by key, nested ones with their dotted names.
  const std::map<std::string, Setting, std::less<>>& all() const { return settings_; }

 private:
  friend class SettingsLoader;
  std::map<std::string, Setting, std::less<>> settings_;
  std::optional<std::string> model_name_;
  std::vector<std::string> notes_;
};

/// True for keys of MaxText 0.2.5; dots reach into nested settings.
bool is_known_setting(std::string_view key);

/// The known keys nearest to `key` in spelling, best first, at most `count`; empty when nothing is near.
std::vector<std::string> nearest_settings(std::string_view key, size_t count = 3);

/// True for settings whose value must not be printed ("hf_access_token").
bool is_secret_setting(std::string_view key);

/// Reads one scalar or flow collection of YAML as MaxText does; text that is no YAML is a string.
Result<Json> parse_setting_value(std::string_view text);

/// MaxText's spelling of booleans on the command line of its converters: y, yes, t, true, on, 1 and their opposites,
/// in any case.
Result<bool> parse_boolean(std::string_view text, std::string_view what);

}  // namespace maxport::maxtext
