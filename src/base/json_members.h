// Reading a JSON object member by member, so that nothing in it goes unnoticed.
#pragma once

#include <initializer_list>
#include <limits>
#include <set>
#include <string>

#include "base/json.h"

namespace maxport {

/// "what: member X: ..." messages of kCorruptData for values of the wrong kind.
Result<int64_t> json_integer(const Json& value, std::string_view what, int64_t min, int64_t max);
Result<std::string> json_text(const Json& value, std::string_view what);
Result<bool> json_boolean(const Json& value, std::string_view what);

/// One object. Members that were asked for are remembered; finish() refuses the others. Refers to the JSON.
class JsonMembers {
 public:
  /// `what` names the object in messages, e.g. "a/zarr.json: chunk_grid".
  static Result<JsonMembers> of(const Json& value, std::string what);

  /// The member, or an error saying that it is missing.
  Result<const Json*> get(const std::string& name);
  /// The member, or null when there is none.
  const Json* find(const std::string& name);

  Result<int64_t> integer(const std::string& name, int64_t min = std::numeric_limits<int64_t>::min(),
                          int64_t max = std::numeric_limits<int64_t>::max());
  Result<std::string> text(const std::string& name);
  /// The member's text, which must be one of `choices`; returns its index.
  Result<size_t> choice(const std::string& name, std::initializer_list<std::string_view> choices);

  /// Members that nobody asked for.
  std::vector<std::string> unknown() const;
  /// kCorruptData when there is any.
  Result<> finish() const;

  /// "a/zarr.json: chunk_grid: name" for a message about a member.
  std::string member_path(std::string_view name) const;
  const std::string& what() const { return what_; }

 private:
  JsonMembers(const Json& object, std::string what) : object_(&object), what_(std::move(what)) {}

  const Json* object_;
  std::string what_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace maxport
