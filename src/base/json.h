// Strict JSON for bytes from outside.
//
// RFC 8259 without extensions, and stricter where two readers could see two documents: a member name may occur once in
// an object, text must be valid UTF-8 without a byte order mark, nesting is capped. Numbers that do not fit (1e400) are
// errors.
#pragma once

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/error.h"

namespace maxport {

using Json = nlohmann::json;
/// Keeps the order of members, for files whose stock writers do.
using OrderedJson = nlohmann::ordered_json;

struct JsonLimits {
  size_t max_bytes = size_t{256} << 20;
  int max_depth = 200;
};

/// Parses one document. `what` names it in messages (usually a path).
Result<Json> parse_json(std::string_view text, std::string_view what, const JsonLimits& limits = {});

/// Appends a JSON string: `text`, which must be valid UTF-8, between quotes and escaped as Json::dump does it. For long
/// documents of one shape, which take several times longer to build from values.
void append_json_string(std::string& out, std::string_view text);

/// "an object", "a string", ... for messages about a value of the wrong kind.
std::string_view json_kind(const Json& value);

}  // namespace maxport
