#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/ranges.h>

#include "base/json_members.h"
#include "orbax/metadata.h"

namespace maxport::orbax {
namespace {

constexpr int64_t kSequenceKey = 1, kDictionaryKey = 2;

Result<Shape> parse_shape(const Json& value, std::string_view what) {
  if (!value.is_array() || value.size() > static_cast<size_t>(kMaxRank))
    return fail(ErrorKind::kCorruptData, "{}: {} is not a shape", what, printable(value.dump().substr(0, 100)));
  Shape shape;
  for (const Json& item : value) {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t extent, json_integer(item, what, 0, std::numeric_limits<int64_t>::max()));
    shape.push_back(extent);
  }
  return shape;
}

Result<TreePath> parse_keys(const Json& value, const std::string& what) {
  if (!value.is_array()) return fail(ErrorKind::kCorruptData, "{}: expected an array, found {}", what, json_kind(value));
  TreePath path;
  for (const Json& item : value) {
    MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(item, what));
    MAXPORT_ASSIGN_OR_RETURN(std::string key, members.text("key"));
    MAXPORT_ASSIGN_OR_RETURN(const int64_t type, members.integer("key_type", kSequenceKey, kDictionaryKey));
    path.push_back({std::move(key), type == kSequenceKey});
  }
  return path;
}

Result<LeafMetadata> parse_leaf(const Json& value, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  MAXPORT_ASSIGN_OR_RETURN(const Json* keys, members.get("key_metadata"));
  LeafMetadata leaf;
  MAXPORT_ASSIGN_OR_RETURN(leaf.path, parse_keys(*keys, members.member_path("key_metadata")));
  MAXPORT_ASSIGN_OR_RETURN(const Json* details, members.get("value_metadata"));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers value_members, JsonMembers::of(*details, members.member_path("value_metadata")));
  MAXPORT_ASSIGN_OR_RETURN(leaf.value_type, value_members.text("value_type"));
  if (const Json* skip = value_members.find("skip_deserialize")) {
    MAXPORT_ASSIGN_OR_RETURN(leaf.skip_deserialize, json_boolean(*skip, value_members.member_path("skip_deserialize")));
  }
  if (const Json* shape = value_members.find("write_shape"); shape && !shape->is_null()) {
    MAXPORT_ASSIGN_OR_RETURN(leaf.write_shape, parse_shape(*shape, value_members.member_path("write_shape")));
  }
  return leaf;
}

Result<bool> parse_flag(JsonMembers& members, const std::string& name) {
  const Json* value = members.find(name);
  if (!value || value->is_null()) return false;
  return json_boolean(*value, members.member_path(name));
}

/// {"key_metadata":[{"key":...,"key_type":2},...],"value_metadata":{"value_type":...,"skip_deserialize":false}}
void append_leaf(std::string& out, const LeafMetadata& leaf) {
  out += R"({"key_metadata":[)";
  for (const KeyPart& part : leaf.path) {
    if (&part != &leaf.path.front()) out += ',';
    out += R"({"key":)";
    append_json_string(out, part.key);
    fmt::format_to(std::back_inserter(out), R"(,"key_type":{}}})", part.sequence ? kSequenceKey : kDictionaryKey);
  }
  out += R"(],"value_metadata":{"value_type":)";
  append_json_string(out, leaf.value_type);
  fmt::format_to(std::back_inserter(out), R"(,"skip_deserialize":{})", leaf.skip_deserialize);
  if (leaf.write_shape) fmt::format_to(std::back_inserter(out), R"(,"write_shape":[{}])", fmt::join(*leaf.write_shape, ","));
  out += "}}";
}

}  // namespace

bool is_empty_type(std::string_view value_type) {
  return value_type == kEmptyDictType || value_type == kEmptyListType || value_type == kEmptyTupleType ||
         value_type == kEmptyNamedTupleType || value_type == kNoneType;
}

bool is_stock_type(std::string_view value_type) {
  return value_type == kNumpyType || value_type == kJaxType || value_type == kScalarType || value_type == kStringType ||
         is_empty_type(value_type);
}

std::string tree_metadata_text(const TreeMetadata& metadata) {
  std::string out = R"({"tree_metadata":{)";
  bool first = true;
  for (const LeafMetadata& leaf : metadata.leaves) {
    if (!std::exchange(first, false)) out += ',';
    append_json_string(out, tuple_text(leaf.path));
    out += ':';
    append_leaf(out, leaf);
  }
  const std::string_view ocdbt = !metadata.use_ocdbt ? "null" : *metadata.use_ocdbt ? "true" : "false";
  fmt::format_to(std::back_inserter(out),
                 R"(}},"use_ocdbt":{},"use_zarr3":{},"store_array_data_equal_to_fill_value":{},"custom_metadata":{}}})", ocdbt,
                 metadata.use_zarr3, metadata.store_equal_to_fill_value, metadata.custom_metadata.dump());
  return out;
}

Result<TreeMetadata> parse_tree_metadata(std::string_view text, std::string_view what) {
  MAXPORT_ASSIGN_OR_RETURN(const Json document, parse_json(text, what));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(document, std::string(what)));
  TreeMetadata out;
  if (const Json* flag = members.find("use_ocdbt"); flag && !flag->is_null()) {
    MAXPORT_ASSIGN_OR_RETURN(out.use_ocdbt, json_boolean(*flag, members.member_path("use_ocdbt")));
  }
  MAXPORT_ASSIGN_OR_RETURN(out.use_zarr3, parse_flag(members, "use_zarr3"));
  MAXPORT_ASSIGN_OR_RETURN(out.store_equal_to_fill_value, parse_flag(members, "store_array_data_equal_to_fill_value"));
  if (const Json* custom = members.find("custom_metadata")) out.custom_metadata = *custom;
  MAXPORT_ASSIGN_OR_RETURN(const Json* tree, members.get("tree_metadata"));
  if (!tree->is_object())
    return fail(ErrorKind::kCorruptData, "{}: expected an object, found {}", members.member_path("tree_metadata"),
                json_kind(*tree));
  for (const auto& [name, value] : tree->items()) {
    MAXPORT_ASSIGN_OR_RETURN(LeafMetadata leaf, parse_leaf(value, fmt::format("{}: {}", what, printable(name))));
    out.leaves.push_back(std::move(leaf));
  }
  std::vector<TreeEntry> entries;
  for (const LeafMetadata& leaf : out.leaves) entries.push_back({leaf.path, !leaf.skip_deserialize});
  MAXPORT_RETURN_IF_ERROR(with_context(check_tree(entries, ErrorKind::kCorruptData), what));
  return out;
}

}  // namespace maxport::orbax
