#include "base/utf8.h"

#include <cstdint>

namespace maxport {

size_t utf8_sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  auto continues = [&](size_t i) { return i < text.size() && (at(i) & 0xc0) == 0x80; };
  const uint8_t lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (!continues(1) || !continues(2)) return 0;
    if (lead == 0xe0 && at(1) < 0xa0) return 0;  // overlong
    if (lead == 0xed && at(1) > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (lead == 0xf0 && at(1) < 0x90) return 0;  // overlong
    if (lead == 0xf4 && at(1) > 0x8f) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_sequence_length(text.substr(i));
    if (length == 0) return false;
    i += length;
  }
  return true;
}

}  // namespace maxport
