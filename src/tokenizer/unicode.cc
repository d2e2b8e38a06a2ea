#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "base/utf8.h"
#include "tokenizer/pattern.h"

namespace maxport::tokenizer {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

utf8proc_option_t options(NormalForm form) {
  int flags = UTF8PROC_STABLE;
  flags |= form == NormalForm::kNfc || form == NormalForm::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) flags |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(flags);
}

bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

std::string encode(char32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes.data());
  return std::string(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(count));
}

/// Bytes at the front that begin a well-formed sequence without completing it; at least 1.
size_t malformed_length(std::string_view bytes) {
  const auto byte = [&](size_t i) { return i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : uint8_t{0}; };
  const uint8_t first = byte(0), second = byte(1);
  uint8_t low = 0x80, high = 0xbf;
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  if (first < 0xe0 || first > 0xf4 || second < low || second > high) return 1;
  return first >= 0xf0 && (byte(2) & 0xc0) == 0x80 ? 3 : 2;
}

}  // namespace

Result<std::string> normalize(std::string_view text, NormalForm form) {
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &made, options(form));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owned(made, std::free);
  if (size < 0) return fail(ErrorKind::kInvalidArgument, "normalizing text: {}", utf8proc_errmsg(size));
  return std::string(reinterpret_cast<const char*>(made), static_cast<size_t>(size));
}

char32_t first_code_point(std::string_view text) {
  utf8proc_int32_t code_point = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &code_point);
  return static_cast<char32_t>(code_point);
}

bool is_numeric(char32_t code_point) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_word(char32_t code_point) {
  static const Result<Pattern> word =
      Pattern::pcre2("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]", "characters of words");
  MAXPORT_CHECK(word.has_value());
  const auto spans = word->find(encode(code_point));
  return spans && !spans->empty() && spans->front().is_match;
}

const std::array<std::string, 256>& byte_characters() {
  static const auto table = [] {
    std::array<std::string, 256> characters;
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) characters[byte] = encode(stands_for_itself(byte) ? byte : next++);
    return characters;
  }();
  return table;
}

std::optional<uint8_t> byte_of_character(char32_t code_point) {
  if (code_point < 0x100) {
    if (stands_for_itself(code_point)) return static_cast<uint8_t>(code_point);
    return std::nullopt;
  }
  static const auto others = [] {
    std::array<uint8_t, 68> bytes{};  // 33 up to the space, 34 from U+007F on, and the soft hyphen
    size_t count = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (!stands_for_itself(byte)) bytes[count++] = static_cast<uint8_t>(byte);
    }
    return bytes;
  }();
  if (code_point - 0x100 >= others.size()) return std::nullopt;
  return others[code_point - 0x100];
}

std::string replace_malformed(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const size_t good = utf8_sequence_length(bytes);
    out += good ? bytes.substr(0, good) : kReplacement;
    bytes.remove_prefix(good ? good : std::min(malformed_length(bytes), bytes.size()));
  }
  return out;
}

}  // namespace maxport::tokenizer
