#include "tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

namespace maxport::tokenizer {
namespace {

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

void append_gap(std::vector<Span>& spans, size_t begin, size_t end) {
  if (begin < end) spans.push_back({begin, end, false});
}

}  // namespace

struct Pattern::Regex {
  ~Regex() { pcre2_code_free(code); }
  pcre2_code* code = nullptr;
  std::string what;
};

Pattern::Pattern(std::string text) : literal_(std::move(text)) {}
Pattern::Pattern(std::unique_ptr<Regex> regex) : regex_(std::move(regex)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::from_json(const Json& value, std::string_view what) {
  if (value.is_object() && value.size() == 1 && value.front().is_string()) {
    const std::string& text = value.front().get_ref<const std::string&>();
    if (value.contains("String")) return literal(text, what);
    if (value.contains("Regex")) return expression(text, what);
  }
  return fail(ErrorKind::kCorruptData, "{}: found {}, expected {{\"String\": ...}} or {{\"Regex\": ...}}", what,
              json_kind(value));
}

Result<Pattern> Pattern::literal(std::string text, std::string_view what) {
  if (text.empty()) return fail(ErrorKind::kUnsupported, "{}: the pattern is an empty text", what);
  return Pattern(std::move(text));
}

Result<Pattern> Pattern::expression(std::string_view regex, std::string_view what) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string translated, translate_expression(regex, what));
  return pcre2(translated, what);
}

Result<Pattern> Pattern::pcre2(std::string_view regex, std::string_view what) {
  int error = 0;
  PCRE2_SIZE position = 0;
  auto compiled = std::make_unique<Regex>();
  compiled->what = what;
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &position, context.get());
  if (!compiled->code)
    return fail(ErrorKind::kUnsupported, "{}: the expression cannot be compiled: {} at byte {} of {}", what,
                pcre2_message(error), position, printable(regex.substr(0, 200)));
  uint32_t may_be_empty = 0;
  pcre2_pattern_info(compiled->code, PCRE2_INFO_MATCHEMPTY, &may_be_empty);
  if (may_be_empty)
    return fail(ErrorKind::kUnsupported, "{}: the expression can match nothing: {}", what,
                printable(regex.substr(0, 200)));
  return Pattern(std::move(compiled));
}

Result<std::vector<Span>> Pattern::find(std::string_view text) const {
  std::vector<Span> spans;
  size_t done = 0;
  if (!regex_) {
    for (size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, done)) {
      append_gap(spans, done, at);
      done = at + literal_.size();
      spans.push_back({at, done, true});
    }
    append_gap(spans, done, text.size());
    return spans;
  }
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create_from_pattern(regex_->code, nullptr));
  if (!match) return fail(ErrorKind::kResourceLimit, "{}: no memory for matching", regex_->what);
  while (done < text.size()) {
    // The caller has checked the text; checking it anew from every start would take quadratic time.
    const int count = pcre2_match(regex_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), done,
                                  PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0)
      return fail(ErrorKind::kResourceLimit, "{}: matching the expression failed: {}", regex_->what,
                  pcre2_message(count));
    const PCRE2_SIZE* found = pcre2_get_ovector_pointer(match.get());
    append_gap(spans, done, found[0]);
    spans.push_back({found[0], found[1], true});
    done = found[1];
  }
  append_gap(spans, done, text.size());
  return spans;
}

}  // namespace maxport::tokenizer
