// UTF-8 validation (RFC 3629).
#pragma once

#include <cstddef>
#include <string_view>

namespace maxport {

/// Bytes of the well-formed sequence at the front of `text`, or 0 when it is malformed or empty. Overlong forms,
/// surrogates and code points above U+10FFFF are malformed.
size_t utf8_sequence_length(std::string_view text);

bool is_valid_utf8(std::string_view text);

}  // namespace maxport
