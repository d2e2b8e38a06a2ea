#include "maxtext/arguments.h"

#include <algorithm>
#include <charconv>

#include "maxtext/spelling.h"

namespace maxport::maxtext {
namespace {

constexpr int kMaxDevices = 65536;
constexpr std::string_view kSaveTypes[] = {"float32", "bfloat16", "float8_e4m3fn"};
constexpr std::string_view kEagerMethods[] = {"transformers", "safetensors"};

/// What follows an option's name.
enum class Takes { kValue, kBoolean, kNothing };

struct OwnOption {
  std::string_view name;
  Takes takes;
  std::string_view value_name;
  std::string_view fallback;
  std::string_view help;
};

constexpr OwnOption kToMaxtext[] = {
    {"lazy_load_tensors", Takes::kBoolean, "true|false", "true",
     "read each weight when it is written, not all of them first; the result is the same"},
    {"eager_load_method", Takes::kValue, "safetensors|transformers", "safetensors",
     "accepted for MaxText's sake; the names of either kind are understood"},
    {"hf_model_path", Takes::kValue, "DIR", "", "the Hugging Face model: a folder with config.json and safetensors files"},
    {"revision", Takes::kValue, "REV", "", "branch, tag or commit; counts only for a model that is not a local folder"},
    {"save_dtype", Takes::kValue, "float32|bfloat16|float8_e4m3fn", "bfloat16", "type of the weights in the checkpoint"},
    {"simulated_cpu_devices_count", Takes::kValue, "N", "16",
     "devices whose shards the chunks respect; 1 writes unsharded arrays"},
};

constexpr OwnOption kToHuggingface[] = {
    {"hf_model_path", Takes::kValue, "DIR", "", "where tokenizer, templates and config.json are copied from"},
    {"override_model_architecture", Takes::kBoolean, "", "false",
     "go by MaxText's settings where they contradict the Hugging Face configuration"},
};

std::span<const OwnOption> own_options(ConversionCommand command) {
  if (command == ConversionCommand::kToMaxtext) return kToMaxtext;
  return kToHuggingface;
}

std::string normal(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '-', '_');
  return out;
}

bool is_configuration_path(std::string_view word) { return word.ends_with(".yml") || word.ends_with(".yaml"); }

bool looks_like_a_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  return !text.empty() && std::ranges::all_of(text, fits);
}

Result<std::string> one_of(std::string_view name, std::string_view value, std::span<const std::string_view> choices) {
  std::string list;
  for (std::string_view choice : choices) {
    if (choice == value) return std::string(value);
    list += (list.empty() ? "" : ", ") + std::string(choice);
  }
  return fail(ErrorKind::kInvalidArgument, "--{} is {}, expected one of {}", name, printable(value), list);
}

Result<int> device_count(std::string_view value) {
  int count = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || stop != value.data() + value.size() || count < 1 || count > kMaxDevices)
    return fail(ErrorKind::kInvalidArgument, "--simulated_cpu_devices_count is {}, expected an integer from 1 to {}",
                printable(value), kMaxDevices);
  return count;
}

class Parser {
 public:
  Parser(ConversionCommand command, std::span<const std::string> words, std::span<const ProgramOption> program)
      : own_(own_options(command)), words_(words), program_(program) {}

  Result<ConversionArguments> parse() {
    for (at_ = 0; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word == "-h" || word == "--help") {
        out_.help = true;
      } else if (word.size() > 1 && word[0] == '-') {
        MAXPORT_RETURN_IF_ERROR(dashed(word));
      } else {
        MAXPORT_RETURN_IF_ERROR(bare(word));
      }
    }
    return std::move(out_);
  }

 private:
  Result<> dashed(const std::string& word) {
    const std::string_view text = std::string_view(word).substr(word.starts_with("--") ? 2 : 1);
    const size_t equals = text.find('=');
    const std::string name = normal(text.substr(0, equals));
    std::optional<std::string> value;
    if (equals != std::string_view::npos) value = std::string(text.substr(equals + 1));
    if (const OwnOption* option = own(name)) return own_option(*option, std::move(value));
    if (const ProgramOption* option = program(name)) return program_option(*option, std::move(value));
    if (!value && name.starts_with("no") && is_switch(name.substr(2))) return switch_off(name.substr(2));
    if (!is_known_setting(name)) return unknown(word, name);
    if (!value) {
      MAXPORT_ASSIGN_OR_RETURN(value, next_word(name));
    }
    out_.overrides.push_back({name, *std::move(value)});
    return {};
  }

  Result<> bare(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string_view key = std::string_view(word).substr(0, equals);
    if (equals != std::string::npos && looks_like_a_name(key)) {
      const std::string name = normal(key);
      std::string value = word.substr(equals + 1);
      if (const OwnOption* option = own(name)) return own_option(*option, std::move(value));
      if (const ProgramOption* option = program(name)) return program_option(*option, std::move(value));
      // Other keys may be known to the given base.yml; one that nearly names an option is not left to it.
      if (!is_known_setting(name) && !nearest_names(name, option_names()).empty()) return unknown(word, name);
      out_.overrides.push_back({std::string(key), std::move(value)});
      return {};
    }
    if (!is_configuration_path(word))
      return fail(ErrorKind::kInvalidArgument,
                  "reading the command line: {} is neither key=value nor an option nor a .yml file{}", printable(word),
                  did_you_mean(nearest_names(normal(word), option_names())));
    if (out_.base_file)
      return fail(ErrorKind::kInvalidArgument, "reading the command line: two configuration files, {} and {}; give one",
                  printable(*out_.base_file), printable(word));
    out_.base_file = word;
    return {};
  }

  const OwnOption* own(std::string_view name) const {
    const auto found = std::ranges::find(own_, name, &OwnOption::name);
    return found == own_.end() ? nullptr : &*found;
  }

  const ProgramOption* program(std::string_view name) const {
    const auto found = std::ranges::find(program_, name, &ProgramOption::name);
    return found == program_.end() ? nullptr : &*found;
  }

  bool is_switch(std::string_view name) const {
    if (const OwnOption* option = own(name)) return option->takes == Takes::kBoolean;
    const ProgramOption* option = program(name);
    return option && option->value == OptionValue::kNone;
  }

  Result<> switch_off(std::string_view name) {
    if (const OwnOption* option = own(name)) return own_option(*option, "false");
    return program_option(*program(name), "false");
  }

  std::vector<std::string_view> option_names() const {
    std::vector<std::string_view> names;
    for (const OwnOption& option : own_) names.push_back(option.name);
    for (const ProgramOption& option : program_) names.push_back(option.name);
    return names;
  }

  Result<> unknown(const std::string& word, const std::string& name) const {
    std::vector<std::string> near = nearest_names(name, option_names());
    for (const std::string& setting : nearest_settings(name)) near.push_back(setting);
    return fail(ErrorKind::kInvalidArgument, "reading the command line: {} is neither an option nor a setting of MaxText{}",
                printable(word.substr(0, word.find('='))), did_you_mean(near));
  }

  /// The word after the current one, as the value of `name`.
  Result<std::string> next_word(std::string_view name) {
    const bool there = at_ + 1 < words_.size();
    const std::string_view next = there ? std::string_view(words_[at_ + 1]) : std::string_view();
    const bool is_another = next.starts_with("--") ||
                            (next.find('=') != std::string_view::npos && is_known_setting(normal(next.substr(0, next.find('=')))));
    if (!there || is_another)
      return fail(ErrorKind::kInvalidArgument, "reading the command line: --{} needs a value", name);
    return words_[++at_];
  }

  /// A switch takes the next word only when that reads as a boolean.
  std::string boolean_word(std::string_view name) {
    if (at_ + 1 < words_.size() && parse_boolean(words_[at_ + 1], name)) return words_[++at_];
    return "true";
  }

  Result<> own_option(const OwnOption& option, std::optional<std::string> value) {
    if (!value && option.takes == Takes::kBoolean) value = boolean_word(option.name);
    if (!value) {
      MAXPORT_ASSIGN_OR_RETURN(value, next_word(option.name));
    }
    return with_context(set_own(option.name, *value), "reading the command line");
  }

  Result<> set_own(std::string_view name, const std::string& value) {
    const std::string dashes = "--" + std::string(name);
    if (name == "lazy_load_tensors") {
      MAXPORT_ASSIGN_OR_RETURN(out_.lazy_load_tensors, parse_boolean(value, dashes));
    } else if (name == "override_model_architecture") {
      MAXPORT_ASSIGN_OR_RETURN(out_.override_model_architecture, parse_boolean(value, dashes));
    } else if (name == "eager_load_method") {
      MAXPORT_ASSIGN_OR_RETURN(std::string method, one_of(name, value, kEagerMethods));
      out_.eager_load_method = method == "transformers" ? EagerLoadMethod::kTransformers : EagerLoadMethod::kSafetensors;
    } else if (name == "save_dtype") {
      MAXPORT_ASSIGN_OR_RETURN(out_.save_dtype, one_of(name, value, kSaveTypes));
      out_.save_dtype_given = true;
    } else if (name == "simulated_cpu_devices_count") {
      MAXPORT_ASSIGN_OR_RETURN(out_.simulated_cpu_devices_count, device_count(value));
    } else if (name == "hf_model_path") {
      out_.hf_model_path = value.empty() ? std::nullopt : std::optional(value);
    } else {
      MAXPORT_CHECK(name == "revision");
      out_.revision = value.empty() ? std::nullopt : std::optional(value);
    }
    return {};
  }

  Result<> program_option(const ProgramOption& option, std::optional<std::string> value) {
    if (option.value == OptionValue::kNone) {
      MAXPORT_ASSIGN_OR_RETURN(bool on, with_context(parse_boolean(value.value_or("true"), "--" + std::string(option.name)),
                                                     "reading the command line"));
      value = on ? "true" : "false";
    } else if (!value) {
      MAXPORT_ASSIGN_OR_RETURN(value, next_word(option.name));
    }
    auto& values = out_.options[std::string(option.name)];
    if (!option.repeatable) values.clear();
    values.push_back(*std::move(value));
    return {};
  }

  std::span<const OwnOption> own_;
  std::span<const std::string> words_;
  std::span<const ProgramOption> program_;
  size_t at_ = 0;
  ConversionArguments out_;
};

}  // namespace

bool ConversionArguments::option_is_on(std::string_view name) const {
  const auto found = options.find(name);
  return found != options.end() && found->second.back() == "true";
}

std::optional<std::string> ConversionArguments::option_value(std::string_view name) const {
  const auto found = options.find(name);
  if (found == options.end()) return std::nullopt;
  return found->second.back();
}

Result<ConversionArguments> parse_conversion_arguments(ConversionCommand command, std::span<const std::string> words,
                                                       std::span<const ProgramOption> program_options) {
  return Parser(command, words, program_options).parse();
}

std::vector<OptionHelp> maxtext_option_help(ConversionCommand command) {
  std::vector<OptionHelp> out;
  for (const OwnOption& option : own_options(command))
    out.push_back({"--" + std::string(option.name), std::string(option.value_name), std::string(option.fallback),
                   std::string(option.help)});
  return out;
}

}  // namespace maxport::maxtext
