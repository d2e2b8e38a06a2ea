#include "maxtext/yaml_value.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "base/utf8.h"

namespace maxport::maxtext {
namespace {

// Enough for any configuration; the parser and the conversion below both recurse.
constexpr size_t kMaxBytes = size_t{4} << 20;
constexpr int kMaxDepth = 40;
constexpr size_t kMaxValues = 1'000'000;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

/// Digits with single underscores taken out, or nothing when another character is among them.
std::optional<std::string> digits_of(std::string_view text, std::string_view allowed) {
  std::string out;
  for (char c : text) {
    if (c == '_') continue;
    if (allowed.find(c) == std::string_view::npos) return std::nullopt;
    out += c;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

std::optional<Json> integer_value(std::string_view text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  int base = 10;
  std::string_view allowed = "0123456789";
  if (rest.starts_with("0x")) {
    base = 16, allowed = "0123456789abcdefABCDEF", rest.remove_prefix(2);
  } else if (rest.starts_with("0b")) {
    base = 2, allowed = "01", rest.remove_prefix(2);
  } else if (rest.size() > 1 && rest[0] == '0') {
    base = 8, allowed = "01234567";
  } else if (rest.empty() || rest[0] == '_') {
    return std::nullopt;
  }
  const auto digits = digits_of(rest, allowed);
  if (!digits) return std::nullopt;
  const std::string signed_digits = (negative ? "-" : "") + *digits;
  int64_t value = 0;
  const char* end = signed_digits.data() + signed_digits.size();
  const auto [stop, error] = std::from_chars(signed_digits.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return Json(value);
}

std::optional<Json> float_value(std::string_view text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (is_one_of(rest, {".inf", ".Inf", ".INF"})) {
    const double infinity = std::numeric_limits<double>::infinity();
    return Json(negative ? -infinity : infinity);
  }
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return Json(std::numeric_limits<double>::quiet_NaN());
  const size_t exponent = rest.find_first_of("eE");
  const std::string_view mantissa = rest.substr(0, exponent);
  const bool has_point = mantissa.find('.') != std::string_view::npos;
  if (!has_point && exponent == std::string_view::npos) return std::nullopt;
  if (mantissa.empty() || mantissa == "." || mantissa[0] == '_' || std::ranges::count(mantissa, '.') > 1)
    return std::nullopt;
  auto digits = digits_of(mantissa, "0123456789.");
  if (!digits) return std::nullopt;
  std::string number = (negative ? "-" : "") + *digits;
  if (exponent != std::string_view::npos) {
    std::string_view power = rest.substr(exponent + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    number += 'e';
    number += power;
  }
  double value = 0;
  const char* end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return Json(value);
}

Json plain_scalar(const std::string& text) {
  if (text.empty() || is_one_of(text, {"~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (is_one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) return false;
  if (auto value = integer_value(text)) return *value;
  if (auto value = float_value(text)) return *value;
  return text;
}

/// Converts with a cap on the values made: aliases can make a small text stand for a vast one.
class Converter {
 public:
  explicit Converter(std::string_view what) : what_(what) {}

  Result<Json> convert(const YAML::Node& node, int depth = 0) {
    if (depth > kMaxDepth || ++values_ > kMaxValues)
      return fail(ErrorKind::kResourceLimit, "{}: more than {} values or {} levels of nesting", what_, kMaxValues,
                  kMaxDepth);
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return Json(nullptr);
      case YAML::NodeType::Scalar:
        // yaml-cpp tags plain scalars "?" and quoted ones "!".
        return node.Tag() == "?" ? plain_scalar(node.Scalar()) : Json(node.Scalar());
      case YAML::NodeType::Sequence:
        return convert_sequence(node, depth);
      case YAML::NodeType::Map:
        return convert_mapping(node, depth);
    }
    return Json(nullptr);
  }

  Result<std::vector<std::pair<std::string, Json>>> members(const YAML::Node& mapping, int depth) {
    std::vector<std::pair<std::string, Json>> out;
    std::set<std::string> seen;
    for (const auto& member : mapping) {
      const int line = member.first.Mark().line + 1;
      if (!member.first.IsScalar())
        return fail(ErrorKind::kInvalidArgument, "{}: a key in line {} is no text", what_, line);
      std::string key = member.first.Scalar();
      if (!seen.insert(key).second)
        return fail(ErrorKind::kInvalidArgument, "{}: {} is given twice, again in line {}", what_, printable(key), line);
      MAXPORT_ASSIGN_OR_RETURN(Json value, convert(member.second, depth + 1));
      out.emplace_back(std::move(key), std::move(value));
    }
    return out;
  }

 private:
  Result<Json> convert_sequence(const YAML::Node& node, int depth) {
    Json out = Json::array();
    for (const auto& item : node) {
      MAXPORT_ASSIGN_OR_RETURN(Json value, convert(item, depth + 1));
      out.push_back(std::move(value));
    }
    return out;
  }

  Result<Json> convert_mapping(const YAML::Node& node, int depth) {
    MAXPORT_ASSIGN_OR_RETURN(auto pairs, members(node, depth));
    Json out = Json::object();
    for (auto& [key, value] : pairs) out[key] = std::move(value);
    return out;
  }

  std::string_view what_;
  size_t values_ = 0;
};

/// Brackets, and indents that may open one each, bound the depth of yaml-cpp's own recursion.
Result<> check_text(std::string_view text, std::string_view what) {
  if (text.size() > kMaxBytes)
    return fail(ErrorKind::kResourceLimit, "{}: {} bytes, more than {} allowed for YAML", what, text.size(), kMaxBytes);
  if (!is_valid_utf8(text)) return fail(ErrorKind::kInvalidArgument, "{}: the text is not valid UTF-8", what);
  if (text.find('\0') != std::string_view::npos)
    return fail(ErrorKind::kInvalidArgument, "{}: the text holds a NUL byte", what);
  int depth = 0;
  size_t dashes = 0;
  for (char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    dashes = c == '-' || c == '?' || c == ':' ? dashes + 1 : (c == ' ' ? dashes : 0);
    if (depth > 200 || dashes > 200) return fail(ErrorKind::kResourceLimit, "{}: the YAML is nested too deep", what);
  }
  return {};
}

Result<YAML::Node> load(std::string_view text, std::string_view what) {
  MAXPORT_RETURN_IF_ERROR(check_text(text, what));
  try {
    return YAML::Load(std::string(text));
  } catch (const YAML::Exception& problem) {
    return fail(ErrorKind::kInvalidArgument, "{}: no valid YAML: line {}, column {}: {}", what,
                problem.mark.line + 1, problem.mark.column + 1, printable(problem.msg));
  }
}

}  // namespace

Result<Json> parse_yaml_value(std::string_view text, std::string_view what) {
  MAXPORT_ASSIGN_OR_RETURN(YAML::Node node, load(text, what));
  return Converter(what).convert(node);
}

Result<std::vector<std::pair<std::string, Json>>> parse_yaml_mapping(std::string_view text, std::string_view what) {
  MAXPORT_ASSIGN_OR_RETURN(YAML::Node node, load(text, what));
  if (!node.IsDefined() || node.IsNull()) return std::vector<std::pair<std::string, Json>>{};
  if (!node.IsMap())
    return fail(ErrorKind::kInvalidArgument, "{}: found no mapping, expected lines of the form key: value", what);
  return Converter(what).members(node, 0);
}

namespace {

std::string float_text(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value < 0 ? "-.inf" : ".inf";
  std::string text = fmt::format("{}", value);
  // YAML 1.1 takes 1e-05 without a point for text, and 10000 for an integer.
  if (text.find('.') == std::string::npos) {
    const size_t exponent = text.find('e');
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return text;
}

bool is_plain_word(const std::string& text) {
  if (text.empty() || !plain_scalar(text).is_string()) return false;
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '/'; };
  return letter(text[0]) && std::ranges::all_of(text, inner) && !is_one_of(text, {"y", "Y", "n", "N", "none", "None"});
}

}  // namespace

std::string yaml_text(const Json& value) {
  if (value.is_number_float()) return float_text(value.get<double>());
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    // JSON's quoted form is also YAML's.
    return is_plain_word(text) ? text : value.dump(-1, ' ', true, Json::error_handler_t::replace);
  }
  if (value.is_array()) {
    std::string out = "[";
    for (const Json& item : value) out += (out.size() > 1 ? ", " : "") + yaml_text(item);
    return out + "]";
  }
  if (value.is_object()) {
    std::string out = "{";
    for (const auto& [key, item] : value.items())
      out += (out.size() > 1 ? ", " : "") + Json(key).dump() + ": " + yaml_text(item);
    return out + "}";
  }
  return value.dump();
}

}  // namespace maxport::maxtext
