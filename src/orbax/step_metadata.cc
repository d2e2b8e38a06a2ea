#include "base/json_members.h"
#include "orbax/metadata.h"

namespace maxport::orbax {
namespace {

Result<std::optional<int64_t>> parse_timestamp(JsonMembers& members, const std::string& name) {
  const Json* value = members.find(name);
  if (!value || value->is_null()) return std::nullopt;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t time, members.integer(name));
  return time;
}

Result<std::map<std::string, std::string>> parse_handlers(JsonMembers& members) {
  std::map<std::string, std::string> handlers;
  const Json* value = members.find("item_handlers");
  if (!value || value->is_null()) return handlers;
  const std::string what = members.member_path("item_handlers");
  if (value->is_string()) {
    handlers[""] = value->get<std::string>();
    return handlers;
  }
  if (!value->is_object())
    return fail(ErrorKind::kCorruptData, "{}: expected an object, a string or null, found {}", what, json_kind(*value));
  for (const auto& [item, handler] : value->items()) {
    // An item that was saved without a handler of its own.
    if (handler.is_null()) continue;
    MAXPORT_ASSIGN_OR_RETURN(handlers[item], json_text(handler, what));
  }
  return handlers;
}

/// null, absent or an object.
Result<Json> parse_object(JsonMembers& members, const std::string& name) {
  const Json* value = members.find(name);
  if (!value || value->is_null()) return Json::object();
  if (!value->is_object())
    return fail(ErrorKind::kCorruptData, "{}: expected an object, found {}", members.member_path(name),
                json_kind(*value));
  return *value;
}

OrderedJson timestamp_json(std::optional<int64_t> time) { return time ? OrderedJson(*time) : OrderedJson(nullptr); }

}  // namespace

std::string step_metadata_text(const StepMetadata& metadata) {
  OrderedJson out = OrderedJson::object();
  if (metadata.item_handlers.size() == 1 && metadata.item_handlers.contains("")) {
    out["item_handlers"] = metadata.item_handlers.at("");
  } else {
    out["item_handlers"] = OrderedJson::object();
    for (const auto& [item, handler] : metadata.item_handlers) out["item_handlers"][item] = handler;
  }
  out["metrics"] = OrderedJson::object();
  out["performance_metrics"] = OrderedJson::object();
  out["init_timestamp_nsecs"] = timestamp_json(metadata.init_timestamp_nsecs);
  out["commit_timestamp_nsecs"] = timestamp_json(metadata.commit_timestamp_nsecs);
  out["custom_metadata"] = metadata.custom_metadata;
  return out.dump();
}

Result<StepMetadata> parse_step_metadata(std::string_view text, std::string_view what) {
  MAXPORT_ASSIGN_OR_RETURN(const Json document, parse_json(text, what));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(document, std::string(what)));
  StepMetadata out;
  MAXPORT_ASSIGN_OR_RETURN(out.item_handlers, parse_handlers(members));
  MAXPORT_RETURN_IF_ERROR(parse_object(members, "metrics"));
  MAXPORT_RETURN_IF_ERROR(parse_object(members, "performance_metrics"));
  MAXPORT_ASSIGN_OR_RETURN(out.init_timestamp_nsecs, parse_timestamp(members, "init_timestamp_nsecs"));
  MAXPORT_ASSIGN_OR_RETURN(out.commit_timestamp_nsecs, parse_timestamp(members, "commit_timestamp_nsecs"));
  MAXPORT_ASSIGN_OR_RETURN(out.custom_metadata, parse_object(members, "custom_metadata"));
  const std::vector<std::string> unknown = members.unknown();
  if (!unknown.empty() && !out.custom_metadata.empty())
    return fail(ErrorKind::kCorruptData, "{}: unknown member \"{}\" beside a custom_metadata that is not empty", what,
                printable(unknown.front()));
  for (const std::string& name : unknown) out.custom_metadata[name] = document[name];
  return out;
}

}  // namespace maxport::orbax
