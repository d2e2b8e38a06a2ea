#include "tokenizer/component.h"

#include "base/utf8.h"

namespace maxport::tokenizer {

Result<std::string> component_type(const Json& value, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  return members.text("type");
}

std::unexpected<Error> unsupported_component(const std::string& what, std::string_view type,
                                             std::string_view supported) {
  return fail(ErrorKind::kUnsupported, "{}: the component \"{}\" is not supported; supported are {}", what,
              printable(type), supported);
}

Result<std::string> component_character(JsonMembers& members, const std::string& name) {
  MAXPORT_ASSIGN_OR_RETURN(std::string text, members.text(name));
  if (text.empty() || utf8_sequence_length(text) != text.size())
    return fail(ErrorKind::kCorruptData, "{}: \"{}\" is not one character", members.member_path(name), printable(text));
  return text;
}

Result<bool> component_flag(JsonMembers& members, const std::string& name, bool otherwise) {
  const Json* value = members.find(name);
  if (!value || value->is_null()) return otherwise;
  return json_boolean(*value, members.member_path(name));
}

}  // namespace maxport::tokenizer
