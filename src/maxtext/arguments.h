// The command lines of maxtext.checkpoint_conversion.to_maxtext and to_huggingface (MaxText 0.2.5), plus options that
// the program adds.
//
// Accepted words, in any order:
//   path.yml | path.yaml       the positional configuration; need not exist; at most one
//   key=value | --key=value    a MaxText setting, or an option of the command
//   --option value             an option that takes a value; also a MaxText setting
//   --option | --nooption      a boolean option, true or false
// Hyphens and underscores are the same in names of options and settings. A name that is neither an option nor a setting
// is an error with the nearest known ones. Values of settings are not interpreted here; settings.h does that.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "maxtext/settings.h"

namespace maxport::maxtext {

enum class ConversionCommand { kToMaxtext, kToHuggingface };

enum class EagerLoadMethod { kSafetensors, kTransformers };

enum class OptionValue {
  kNone,      ///< a switch: `--name`, `--noname`, `--name=true`
  kRequired,  ///< `--name=value` or `--name value`
};

/// An option that the program has and MaxText has not. Names are spelt with underscores.
struct ProgramOption {
  std::string_view name;
  OptionValue value = OptionValue::kNone;
  std::string_view value_name = {};  ///< for the help, e.g. "SIZE"
  std::string_view help = {};
  bool repeatable = false;           ///< otherwise of two the later counts
};

struct ConversionArguments {
  std::optional<std::string> base_file;
  std::vector<Override> overrides;

  // to_maxtext's own six.
  bool lazy_load_tensors = true;
  EagerLoadMethod eager_load_method = EagerLoadMethod::kSafetensors;
  std::optional<std::string> hf_model_path;  ///< also an option of to_huggingface
  std::optional<std::string> revision;
  std::string save_dtype = "bfloat16";  ///< float32, bfloat16 or float8_e4m3fn
  bool save_dtype_given = false;
  int simulated_cpu_devices_count = 16;

  // to_huggingface's own.
  bool override_model_architecture = false;

  /// The program's options that were given, by name; "true" or "false" for switches.
  std::map<std::string, std::vector<std::string>, std::less<>> options;
  bool help = false;  ///< -h or --help was among the words

  bool option_is_on(std::string_view name) const;
  std::optional<std::string> option_value(std::string_view name) const;
};

/// `words` without the program's and the command's name.
Result<ConversionArguments> parse_conversion_arguments(ConversionCommand command, std::span<const std::string> words,
                                                       std::span<const ProgramOption> program_options);

/// What `--help` says about one option.
struct OptionHelp {
  std::string name;      ///< "--save_dtype"
  std::string value;     ///< "float32|bfloat16|float8_e4m3fn", empty for a switch
  std::string fallback;  ///< what counts when it is not given, empty when nothing does
  std::string text;
};

/// MaxText's own options of a command, for the help.
std::vector<OptionHelp> maxtext_option_help(ConversionCommand command);

}  // namespace maxport::maxtext
