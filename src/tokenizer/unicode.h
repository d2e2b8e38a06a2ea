// What tokenizers ask of characters, and the characters that stand for bytes in byte-level vocabularies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace maxport::tokenizer {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

Result<std::string> normalize(std::string_view text, NormalForm form);

/// The code point at the front of valid, non-empty UTF-8.
char32_t first_code_point(std::string_view text);

/// General category Nd, Nl or No.
bool is_numeric(char32_t code_point);
/// The property White_Space.
bool is_white_space(char32_t code_point);
/// Alphabetic, a mark, a decimal digit, connector punctuation or a joiner: \w of Unicode's UTS 18.
bool is_word(char32_t code_point);

/// GPT-2's alphabet: printable Latin-1 characters stand for themselves, the other bytes for U+0100 on, in order.
const std::array<std::string, 256>& byte_characters();
/// The byte that a character of that alphabet stands for.
std::optional<uint8_t> byte_of_character(char32_t code_point);

/// Malformed UTF-8 becomes U+FFFD, one for each maximal part of a well-formed sequence (Unicode 15, section 3.9).
std::string replace_malformed(std::string_view bytes);

}  // namespace maxport::tokenizer
