#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "tokenizer/pattern.h"

namespace maxport::tokenizer {
namespace {

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Translator {
 public:
  Translator(std::string_view regex, std::string_view what) : regex_(regex), what_(what) {}

  Result<std::string> run() {
    while (at_ < regex_.size()) {
      const char c = regex_[at_];
      if (c == '\\') {
        MAXPORT_RETURN_IF_ERROR(escape());
      } else if (in_class_) {
        MAXPORT_RETURN_IF_ERROR(inside_class(c));
      } else {
        MAXPORT_RETURN_IF_ERROR(outside_class(c));
      }
    }
    return std::move(out_);
  }

 private:
  std::string_view rest() const { return regex_.substr(at_); }

  Result<> refuse(size_t bytes) const {
    return fail(ErrorKind::kUnsupported, "{}: \"{}\" at byte {} of the expression {} cannot be honoured", what_,
                printable(rest().substr(0, bytes)), at_, printable(regex_.substr(0, 200)));
  }

  void copy(size_t bytes) {
    out_ += rest().substr(0, bytes);
    at_ += bytes;
  }

  void replace(size_t bytes, std::string_view with) {
    out_ += with;
    at_ += bytes;
  }

  Result<> inside_class(char c) {
    // Oniguruma takes a bracket in a class for another class, and && for an intersection.
    if (c == '[' || rest().starts_with("&&")) return refuse(2);
    const bool first = at_ == class_start_;
    if (c == ']' && first) return refuse(1);
    if (c == ']') in_class_ = false;
    copy(1);
    if (c == '^' && first) class_start_ = at_;
    return {};
  }

  Result<> outside_class(char c) {
    static constexpr std::array<std::string_view, 7> kGroups = {"(?:", "(?i:", "(?!", "(?=", "(?<!", "(?<=", "(?>"};
    if (c == '^' || c == '$' || rest().starts_with("}+") || rest().starts_with("{,")) return refuse(2);
    if (c == '(') {
      for (const std::string_view group : kGroups) {
        if (rest().starts_with(group)) return copy(group.size()), Result<>();
      }
      if (rest().starts_with("(?") || rest().starts_with("(*")) return refuse(4);
    }
    copy(1);
    if (c == '[') {
      in_class_ = true;
      class_start_ = at_;
    }
    return {};
  }

  Result<> escape() {
    if (rest().size() < 2) return refuse(1);
    const char c = rest()[1];
    switch (c) {
      // PCRE2 counts U+180E among the spaces.
      case 's':
        return replace(2, "\\p{White_Space}"), Result<>();
      case 'S':
        return replace(2, "\\P{White_Space}"), Result<>();
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_point(4, false);
      case 'x':
        return rest().starts_with("\\x{") ? braced_code_point() : code_point(2, true);
      case 'd':
      case 'D':
      case 'r':
      case 'n':
      case 't':
      case 'f':
        return copy(2), Result<>();
      default:
        break;
    }
    if (is_alphanumeric(c)) return refuse(2);
    copy(1 + std::max<size_t>(1, utf8_sequence_length(rest().substr(1))));
    return {};
  }

  /// General categories mean the same to both; any other name is taken for a script, not for PCRE2's script extensions.
  Result<> property() {
    const size_t close = rest().find('}');
    if (rest().size() < 3 || rest()[2] != '{' || close == std::string_view::npos) return refuse(3);
    std::string_view name = rest().substr(3, close - 3);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    if (name.empty() || !std::ranges::all_of(name, [](char c) { return is_alphanumeric(c) || c == '_'; }))
      return refuse(close + 1);
    replace(close + 1,
            fmt::format("\\{}{{{}{}{}}}", rest()[1], negated ? "^" : "", name.size() > 2 ? "sc:" : "", name));
    return {};
  }

  Result<> braced_code_point() {
    const size_t close = rest().find('}');
    if (close == std::string_view::npos || close < 4 || close > 9 ||
        !std::ranges::all_of(rest().substr(3, close - 3), is_hex))
      return refuse(4);
    copy(close + 1);
    return {};
  }

  /// \xHH is a byte to Oniguruma, which only below 80 is a character.
  Result<> code_point(size_t digits, bool ascii_only) {
    const std::string_view text = rest().substr(2, digits);
    if (text.size() != digits || !std::ranges::all_of(text, is_hex) || (ascii_only && text[0] > '7'))
      return refuse(2 + digits);
    replace(2 + digits, fmt::format("\\x{{{}}}", text));
    return {};
  }

  std::string_view regex_;
  std::string_view what_;
  std::string out_;
  size_t at_ = 0;
  bool in_class_ = false;
  size_t class_start_ = 0;
};

}  // namespace

Result<std::string> translate_expression(std::string_view regex, std::string_view what) {
  return Translator(regex, what).run();
}

}  // namespace maxport::tokenizer
