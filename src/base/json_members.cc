#include "base/json_members.h"

#include <fmt/ranges.h>

namespace maxport {

Result<int64_t> json_integer(const Json& value, std::string_view what, int64_t min, int64_t max) {
  if (!value.is_number_integer())
    return fail(ErrorKind::kCorruptData, "{}: expected an integer, found {}", what, json_kind(value));
  const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (too_large || value.get<int64_t>() < min || value.get<int64_t>() > max)
    return fail(ErrorKind::kCorruptData, "{}: {} is not between {} and {}", what, value.dump(), min, max);
  return value.get<int64_t>();
}

Result<std::string> json_text(const Json& value, std::string_view what) {
  if (!value.is_string())
    return fail(ErrorKind::kCorruptData, "{}: expected a string, found {}", what, json_kind(value));
  return value.get<std::string>();
}

Result<bool> json_boolean(const Json& value, std::string_view what) {
  if (!value.is_boolean())
    return fail(ErrorKind::kCorruptData, "{}: expected true or false, found {}", what, json_kind(value));
  return value.get<bool>();
}

Result<JsonMembers> JsonMembers::of(const Json& value, std::string what) {
  if (!value.is_object())
    return fail(ErrorKind::kCorruptData, "{}: expected an object, found {}", what, json_kind(value));
  return JsonMembers(value, std::move(what));
}

Result<const Json*> JsonMembers::get(const std::string& name) {
  const Json* value = find(name);
  if (!value) return fail(ErrorKind::kCorruptData, "{}: member \"{}\" is missing", what_, printable(name));
  return value;
}

const Json* JsonMembers::find(const std::string& name) {
  known_.insert(name);
  const auto at = object_->find(name);
  return at == object_->end() ? nullptr : &*at;
}

Result<int64_t> JsonMembers::integer(const std::string& name, int64_t min, int64_t max) {
  MAXPORT_ASSIGN_OR_RETURN(const Json* value, get(name));
  return json_integer(*value, member_path(name), min, max);
}

Result<std::string> JsonMembers::text(const std::string& name) {
  MAXPORT_ASSIGN_OR_RETURN(const Json* value, get(name));
  return json_text(*value, member_path(name));
}

Result<size_t> JsonMembers::choice(const std::string& name, std::initializer_list<std::string_view> choices) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string value, text(name));
  size_t index = 0;
  for (std::string_view choice : choices) {
    if (choice == value) return index;
    ++index;
  }
  return fail(ErrorKind::kCorruptData, "{}: \"{}\" is not one of \"{}\"", member_path(name), printable(value),
              fmt::join(choices, "\", \""));
}

std::vector<std::string> JsonMembers::unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_->items())
    if (!known_.contains(name)) names.push_back(name);
  return names;
}

Result<> JsonMembers::finish() const {
  const std::vector<std::string> names = unknown();
  if (names.empty()) return {};
  return fail(ErrorKind::kCorruptData, "{}: unknown member \"{}\"", what_, printable(names.front()));
}

std::string JsonMembers::member_path(std::string_view name) const { return fmt::format("{}: {}", what_, printable(name)); }

}  // namespace maxport
