// YAML text as JSON values, read the way MaxText's configuration library reads it (YAML 1.1 scalars, with 1e-5 a
// number and dates plain text).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace maxport::maxtext {

/// One scalar or flow collection. Text that is no valid YAML is kInvalidArgument; `what` names it in the message.
Result<Json> parse_yaml_value(std::string_view text, std::string_view what);

/// A mapping at the top of a file, in its order; keys must be text and occur once. An empty file is an empty mapping.
Result<std::vector<std::pair<std::string, Json>>> parse_yaml_mapping(std::string_view text, std::string_view what);

/// A value as YAML that the functions above (and MaxText) read back as the same value: block style for nothing, flow
/// style for lists and objects (keys of at most 1000 bytes), text quoted where it would otherwise be taken for something
/// else.
std::string yaml_text(const Json& value);

}  // namespace maxport::maxtext
