#include "base/base64.h"

namespace maxport {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string base64_url(ByteSpan bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < count ? std::to_integer<uint32_t>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i) out += i <= count ? kAlphabet[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::optional<Bytes> decode_base64_url(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  Bytes out;
  for (size_t at = 0; at < text.size(); at += 4) {
    const std::string_view group = text.substr(at, 4);
    const size_t padding = at + 4 < text.size() ? 0 : group.ends_with("==") ? 2 : group.ends_with("=") ? 1 : 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; ++i) {
      const size_t value = i < 4 - padding ? kAlphabet.find(group[i]) : 0;
      if (value == std::string_view::npos) return std::nullopt;
      bits = bits << 6 | static_cast<uint32_t>(value);
    }
    if ((bits & ((1u << (8 * padding)) - 1)) != 0) return std::nullopt;
    for (size_t i = 0; i < 3 - padding; ++i) out.push_back(static_cast<std::byte>(bits >> (16 - 8 * i)));
  }
  return out;
}

}  // namespace maxport
