// Base64 with the URL-safe alphabet and padding (RFC 4648, section 5).
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"

namespace maxport {

std::string base64_url(ByteSpan bytes);

/// Nothing when the text is not the encoding of any bytes: other characters, a length that is no multiple of 4, wrong
/// padding, stray bits.
std::optional<Bytes> decode_base64_url(std::string_view text);

}  // namespace maxport
