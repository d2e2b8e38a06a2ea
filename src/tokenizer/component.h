// What the components of a tokenizer.json have in common: a "type", and "Sequence" for several in turn.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json_members.h"

namespace maxport::tokenizer {

/// The member "type".
Result<std::string> component_type(const Json& value, const std::string& what);

/// kUnsupported: "what: the component X is not supported; supported are ...".
std::unexpected<Error> unsupported_component(const std::string& what, std::string_view type,
                                             std::string_view supported);

/// A text of one character; returns it as UTF-8.
Result<std::string> component_character(JsonMembers& members, const std::string& name);

/// A boolean member, or `otherwise` where it is absent or null.
Result<bool> component_flag(JsonMembers& members, const std::string& name, bool otherwise);

/// The elements of an array, each parsed by parse(element, what).
template <class T, class Parse>
Result<std::vector<T>> parse_components(JsonMembers& members, const std::string& name, Parse parse) {
  MAXPORT_ASSIGN_OR_RETURN(const Json* array, members.get(name));
  const std::string what = members.member_path(name);
  if (!array->is_array())
    return fail(ErrorKind::kCorruptData, "{}: found {}, expected an array", what, json_kind(*array));
  std::vector<T> parsed;
  for (size_t i = 0; i < array->size(); ++i) {
    MAXPORT_ASSIGN_OR_RETURN(T element, parse((*array)[i], fmt::format("{}[{}]", what, i)));
    parsed.push_back(std::move(element));
  }
  return parsed;
}

}  // namespace maxport::tokenizer
