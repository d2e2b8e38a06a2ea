#include "maxtext/known_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "maxtext/embedded.h"
#include "maxtext/settings.h"
#include "maxtext/spelling.h"
#include "maxtext/yaml_value.h"

namespace maxport::maxtext {
namespace {

SettingType type_named(std::string_view name) {
  if (name == "bool") return SettingType::kBoolean;
  if (name == "int") return SettingType::kInteger;
  if (name == "float") return SettingType::kFloat;
  if (name == "str") return SettingType::kText;
  if (name == "list") return SettingType::kList;
  if (name == "object") return SettingType::kObject;
  MAXPORT_CHECK(name == "any");
  return SettingType::kAny;
}

std::string_view expected_text(SettingType type) {
  switch (type) {
    case SettingType::kBoolean: return "true or false";
    case SettingType::kInteger: return "an integer";
    case SettingType::kFloat: return "a number";
    case SettingType::kText: return "text";
    case SettingType::kList: return "a list such as [a, b]";
    case SettingType::kObject: return "a mapping such as {a: 1}";
    case SettingType::kAny: break;
  }
  return "another value";
}

std::map<std::string, KnownSetting, std::less<>> read_table() {
  auto table = parse_json(settings_table(), "the built-in table of settings");
  MAXPORT_CHECK(table.has_value());
  std::map<std::string, KnownSetting, std::less<>> out;
  for (const auto& [key, entry] : table->items()) {
    KnownSetting known;
    known.type = type_named(entry.at("type").get_ref<const std::string&>());
    known.nullable = entry.contains("null");
    if (entry.contains("choices")) known.choices = entry.at("choices").get<std::vector<Json>>();
    if (entry.contains("default")) known.fallback = entry.at("default");
    out.emplace(key, std::move(known));
  }
  return out;
}

/// "0x10" is no number here: texts that YAML read as text have no such form left.
std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

std::optional<Json> as_boolean(const Json& value) {
  if (value.is_boolean()) return value;
  if (value.is_number() && (value == 0 || value == 1)) return Json(value == 1);
  if (value.is_string())
    if (auto boolean = parse_boolean(value.get_ref<const std::string&>(), "")) return Json(*boolean);
  return std::nullopt;
}

std::optional<Json> as_integer(const Json& value) {
  if (value.is_number_integer()) return value;
  if (value.is_boolean()) return Json(value.get<bool>() ? 1 : 0);
  std::optional<double> number;
  if (value.is_number_float()) number = value.get<double>();
  if (value.is_string()) number = number_in(value.get_ref<const std::string&>());
  // 2^53: beyond it a float does not say which integer is meant.
  if (!number || std::trunc(*number) != *number || std::abs(*number) > 9007199254740992.0) return std::nullopt;
  return Json(static_cast<int64_t>(*number));
}

std::optional<Json> as_float(const Json& value) {
  if (value.is_number()) return Json(value.get<double>());
  if (value.is_string())
    if (auto number = number_in(value.get_ref<const std::string&>())) return Json(*number);
  return std::nullopt;
}

std::optional<Json> as_text(const Json& value, std::optional<std::string_view> raw) {
  if (value.is_string()) return value;
  if (value.is_structured() && !raw) return std::nullopt;
  if (raw) return Json(std::string(*raw));
  return Json(value.dump());
}

/// A list, a tuple "(a, b)" as Python prints it, or one item.
std::optional<Json> as_list(const Json& value) {
  if (value.is_array()) return value;
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty()) return Json::array();
  if (text.starts_with('(') && text.ends_with(')')) {
    auto list = parse_yaml_value("[" + text.substr(1, text.size() - 2) + "]", "");
    if (list) return *std::move(list);
  }
  return Json::array({value});
}

std::optional<Json> converted(SettingType type, const Json& value, std::optional<std::string_view> raw) {
  switch (type) {
    case SettingType::kBoolean: return as_boolean(value);
    case SettingType::kInteger: return as_integer(value);
    case SettingType::kFloat: return as_float(value);
    case SettingType::kText: return as_text(value, raw);
    case SettingType::kList: return as_list(value);
    case SettingType::kObject: return value.is_object() ? std::optional(value) : std::nullopt;
    case SettingType::kAny: return value;
  }
  return std::nullopt;
}

/// The choice that `value` means, whatever its case.
const Json* matching_choice(const KnownSetting& known, const Json& value) {
  for (const Json& choice : known.choices) {
    if (choice == value) return &choice;
    if (choice.is_string() && value.is_string() &&
        edit_distance(choice.get_ref<const std::string&>(), value.get_ref<const std::string&>()) == 0)
      return &choice;
  }
  return nullptr;
}

}  // namespace

const std::map<std::string, KnownSetting, std::less<>>& known_settings() {
  static const auto table = read_table();
  return table;
}

std::string shown_setting(std::string_view key, const Json& value) {
  if (is_secret_setting(key) && !value.is_null()) return "(a secret)";
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<Json> coerce_setting(std::string_view key, const KnownSetting& known, Json value,
                            std::optional<std::string_view> raw) {
  if (value.is_string() && edit_distance(value.get_ref<const std::string&>(), "none") == 0) value = nullptr;
  if (value.is_null()) {
    if (known.nullable || known.type == SettingType::kAny) return value;
    if (known.type == SettingType::kText) return Json("");
    return fail(ErrorKind::kInvalidArgument, "{} has no value, expected {}", key, expected_text(known.type));
  }
  auto out = converted(known.type, value, raw);
  if (!out)
    return fail(ErrorKind::kInvalidArgument, "{} is {}, expected {}", key, shown_setting(key, value),
                expected_text(known.type));
  // Empty text stands for "not set" in several settings with choices.
  if (known.choices.empty() || *out == "") return *std::move(out);
  if (const Json* choice = matching_choice(known, *out)) return *choice;
  std::string list;
  for (const Json& choice : known.choices) list += (list.empty() ? "" : ", ") + choice.dump();
  return fail(ErrorKind::kInvalidArgument, "{} is {}, expected one of {}", key, shown_setting(key, value), list);
}

}  // namespace maxport::maxtext
