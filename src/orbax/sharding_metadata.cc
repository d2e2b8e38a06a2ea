#include <limits>

#include "base/base64.h"
#include "base/json_members.h"
#include "orbax/metadata.h"

namespace maxport::orbax {
namespace {

constexpr std::string_view kMeshAxis = "checkpoint_sharding_axis";

/// Stock puts the sharding into the file as a string that holds JSON again.
std::string sharding_json_text(const DeviceSharding& sharding) {
  OrderedJson spec = OrderedJson::array();
  if (sharding.axis) {
    for (size_t i = 0; i < *sharding.axis; ++i) spec.push_back(nullptr);
    spec.push_back(kMeshAxis);
  } else if (sharding.rank > 0) {
    spec.push_back(nullptr);
  }
  OrderedJson mesh = OrderedJson::array();
  for (int64_t id = 0; id < sharding.devices; ++id) mesh.push_back({{"id", id}});
  OrderedJson out = OrderedJson::object();
  out["sharding_type"] = "NamedSharding";
  out["shape"] = OrderedJson::array({sharding.devices});
  out["axis_names"] = OrderedJson::array({kMeshAxis});
  out["axis_types"] = OrderedJson::array({"AxisType.Auto"});
  out["partition_spec"] = std::move(spec);
  out["device_mesh"] = OrderedJson::object();
  out["device_mesh"]["mesh"] = std::move(mesh);
  return out.dump();
}

Result<Shape> parse_shape(JsonMembers& members, const std::string& name) {
  MAXPORT_ASSIGN_OR_RETURN(const Json* value, members.get(name));
  Shape shape;
  if (!value->is_array() || value->size() > static_cast<size_t>(kMaxRank))
    return fail(ErrorKind::kCorruptData, "{}: not a shape", members.member_path(name));
  for (const Json& item : *value) {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t extent, json_integer(item, members.member_path(name), 0,
                                                                std::numeric_limits<int64_t>::max()));
    shape.push_back(extent);
  }
  return shape;
}

Result<ArrayMetadata> parse_array(const Json& item, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers outer, JsonMembers::of(item, what));
  MAXPORT_ASSIGN_OR_RETURN(const Json* inner, outer.get("array_metadata"));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(*inner, outer.member_path("array_metadata")));
  ArrayMetadata array;
  MAXPORT_ASSIGN_OR_RETURN(array.name, members.text("param_name"));
  MAXPORT_ASSIGN_OR_RETURN(array.write_shape, parse_shape(members, "write_shape"));
  MAXPORT_ASSIGN_OR_RETURN(array.chunk_shape, parse_shape(members, "chunk_shape"));
  if (const Json* extra = members.find("ext_metadata")) array.ext_metadata = *extra;
  return array;
}

}  // namespace

DeviceSharding device_sharding(std::span<const int64_t> shape, int64_t devices) {
  DeviceSharding sharding{.devices = devices, .axis = {}, .rank = shape.size()};
  for (size_t axis = 0; axis < std::min<size_t>(2, shape.size()) && !sharding.axis; ++axis)
    if (shape[axis] % devices == 0) sharding.axis = axis;
  return sharding;
}

Shape device_write_shape(std::span<const int64_t> shape, int64_t devices) {
  Shape out(shape.begin(), shape.end());
  for (int64_t& extent : out) {
    if (extent % devices != 0) continue;
    extent /= devices;
    break;
  }
  return out;
}

std::string sharding_text(const std::map<std::string, DeviceSharding>& shardings) {
  Json out = Json::object();
  for (const auto& [name, sharding] : shardings) out[base64_url(as_bytes(name))] = sharding_json_text(sharding);
  return out.dump();
}

Result<std::map<std::string, Json>> parse_sharding(std::string_view text, std::string_view what) {
  MAXPORT_ASSIGN_OR_RETURN(const Json document, parse_json(text, what));
  if (!document.is_object())
    return fail(ErrorKind::kCorruptData, "{}: expected an object, found {}", what, json_kind(document));
  std::map<std::string, Json> out;
  for (const auto& [encoded, value] : document.items()) {
    const auto name = decode_base64_url(encoded);
    if (!name) return fail(ErrorKind::kCorruptData, "{}: member \"{}\" is not base64", what, printable(encoded));
    const std::string leaf = fmt::format("{}: {}", what, printable(as_text(*name)));
    MAXPORT_ASSIGN_OR_RETURN(const std::string inner, json_text(value, leaf));
    MAXPORT_ASSIGN_OR_RETURN(out[std::string(as_text(*name))], parse_json(inner, leaf));
  }
  return out;
}

std::string array_metadata_text(std::span<const ArrayMetadata> arrays) {
  OrderedJson list = OrderedJson::array();
  for (const ArrayMetadata& array : arrays) {
    OrderedJson item = OrderedJson::object();
    item["param_name"] = array.name;
    item["write_shape"] = array.write_shape;
    item["chunk_shape"] = array.chunk_shape;
    item["ext_metadata"] = array.ext_metadata;
    OrderedJson outer = OrderedJson::object();
    outer["array_metadata"] = std::move(item);
    list.push_back(std::move(outer));
  }
  OrderedJson out = OrderedJson::object();
  out["array_metadatas"] = std::move(list);
  return out.dump();
}

Result<std::vector<ArrayMetadata>> parse_array_metadata(std::string_view text, std::string_view what) {
  MAXPORT_ASSIGN_OR_RETURN(const Json document, parse_json(text, what));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(document, std::string(what)));
  MAXPORT_ASSIGN_OR_RETURN(const Json* list, members.get("array_metadatas"));
  if (!list->is_array())
    return fail(ErrorKind::kCorruptData, "{}: expected an array, found {}", members.member_path("array_metadatas"),
                json_kind(*list));
  std::vector<ArrayMetadata> out;
  for (const Json& item : *list) {
    MAXPORT_ASSIGN_OR_RETURN(ArrayMetadata array, parse_array(item, members.member_path("array_metadatas")));
    out.push_back(std::move(array));
  }
  return out;
}

std::string strings_text(const std::map<std::string, std::string>& strings) { return Json(strings).dump(); }

Result<std::map<std::string, std::string>> parse_strings(std::string_view text, std::string_view what) {
  MAXPORT_ASSIGN_OR_RETURN(const Json document, parse_json(text, what));
  if (!document.is_object())
    return fail(ErrorKind::kCorruptData, "{}: expected an object, found {}", what, json_kind(document));
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : document.items()) {
    MAXPORT_ASSIGN_OR_RETURN(out[name], json_text(value, fmt::format("{}: {}", what, printable(name))));
  }
  return out;
}

}  // namespace maxport::orbax
