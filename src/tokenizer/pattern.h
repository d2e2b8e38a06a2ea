// The patterns of a tokenizer.json: a literal text or a regular expression, found from left to right.
//
// The reference compiles expressions with Oniguruma, this with PCRE2 in Unicode mode. Where the two read an expression
// differently it is rewritten (\s, \S, \uXXXX, names of scripts) or refused (anchors, \w, \b, nested classes, inline
// flags), so that one that is accepted finds the same. Expressions that can match nothing are refused too.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace maxport::tokenizer {

/// Bytes [begin, end) of a text, either a match or what lies between two.
struct Span {
  size_t begin;
  size_t end;
  bool is_match;
};

class Pattern {
 public:
  /// {"String": text} or {"Regex": expression}. kUnsupported names the part of an expression that cannot be honoured.
  static Result<Pattern> from_json(const Json& value, std::string_view what);
  static Result<Pattern> literal(std::string text, std::string_view what);
  static Result<Pattern> expression(std::string_view regex, std::string_view what);
  /// In PCRE2's own syntax, for expressions that are not from outside.
  static Result<Pattern> pcre2(std::string_view regex, std::string_view what);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  /// The spans that cover `text`, which must be valid UTF-8, in order; none is empty. kResourceLimit when the
  /// expression backtracks beyond PCRE2's limits. Safe from several threads.
  Result<std::vector<Span>> find(std::string_view text) const;

 private:
  struct Regex;
  explicit Pattern(std::string literal);
  explicit Pattern(std::unique_ptr<Regex> regex);

  std::string literal_;
  std::unique_ptr<Regex> regex_;
};

/// An expression of Oniguruma's in PCRE2's syntax; see above.
Result<std::string> translate_expression(std::string_view regex, std::string_view what);

}  // namespace maxport::tokenizer
