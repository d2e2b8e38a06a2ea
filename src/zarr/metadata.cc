#include "zarr/metadata.h"

#include <algorithm>

#include "base/json_members.h"
#include "zarr/codec_json.h"
#include "zarr/fill_value.h"

namespace maxport::zarr {
namespace {

struct StoredType {
  DType dtype;
  bool big_endian;
};

/// "<f4", ">f4", "|u1" or a name such as "bfloat16". The byte order of one-byte types means nothing.
Result<StoredType> parse_dtype_v2(const Json& value, const std::string& what) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (auto dtype = dtype_from_zarr2(text)) return StoredType{*dtype, false};
    if (text.size() > 1 && std::string_view("<>|").contains(text[0])) {
      const std::string rest = text.substr(1);
      if (auto dtype = dtype_from_zarr2("|" + rest); dtype) return StoredType{*dtype, false};
      if (auto dtype = dtype_from_zarr2("<" + rest); dtype && text[0] == '>') return StoredType{*dtype, true};
    }
  }
  return fail(ErrorKind::kUnsupported, "{}: element type {} is not supported", what, printable(value.dump()));
}

/// Order "F" is the reversal of all axes.
void add_order(bool fortran, ArraySpec& spec) {
  if (!fortran || spec.shape.size() < 2) return;
  Codec transpose{.kind = CodecKind::kTranspose};
  for (size_t i = spec.shape.size(); i-- > 0;) transpose.order.push_back(static_cast<int>(i));
  spec.codecs.push_back(std::move(transpose));
}

Result<ArraySpec> parse_v2(const Json& document, const std::string& what) {
  ArraySpec spec{.version = Version::kV2, .key_encoding = {.prefixed = false, .separator = '.'}};
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(document, what));
  MAXPORT_RETURN_IF_ERROR(members.integer("zarr_format", 2, 2));
  MAXPORT_ASSIGN_OR_RETURN(const Json* shape, members.get("shape"));
  MAXPORT_ASSIGN_OR_RETURN(spec.shape, parse_extents(*shape, 0, members.member_path("shape")));
  MAXPORT_ASSIGN_OR_RETURN(const Json* chunks, members.get("chunks"));
  MAXPORT_ASSIGN_OR_RETURN(spec.chunk_shape, parse_extents(*chunks, 1, members.member_path("chunks")));
  MAXPORT_ASSIGN_OR_RETURN(const Json* dtype, members.get("dtype"));
  MAXPORT_ASSIGN_OR_RETURN(const StoredType type, parse_dtype_v2(*dtype, members.member_path("dtype")));
  spec.dtype = type.dtype;
  MAXPORT_RETURN_IF_ERROR(with_context(check_array_spec(spec, ErrorKind::kCorruptData), what));
  MAXPORT_ASSIGN_OR_RETURN(const size_t order, members.choice("order", {"C", "F"}));
  add_order(order == 1, spec);
  spec.codecs.push_back({.kind = CodecKind::kBytes, .big_endian = type.big_endian});
  MAXPORT_ASSIGN_OR_RETURN(const Json* filters, members.get("filters"));
  if (!filters->is_null() && *filters != Json::array())
    return fail(ErrorKind::kUnsupported, "{}: filters are not supported", what);
  MAXPORT_ASSIGN_OR_RETURN(const Json* compressor, members.get("compressor"));
  MAXPORT_ASSIGN_OR_RETURN(std::vector<Codec> codecs,
                           parse_compressor(*compressor, spec.dtype, members.member_path("compressor")));
  std::ranges::move(codecs, std::back_inserter(spec.codecs));
  MAXPORT_ASSIGN_OR_RETURN(const Json* fill, members.get("fill_value"));
  MAXPORT_ASSIGN_OR_RETURN(spec.fill_value,
                           parse_fill_value(Version::kV2, spec.dtype, *fill, members.member_path("fill_value")));
  if (members.find("dimension_separator")) {
    MAXPORT_ASSIGN_OR_RETURN(const size_t separator, members.choice("dimension_separator", {".", "/"}));
    spec.key_encoding.separator = separator == 0 ? '.' : '/';
  }
  return spec;
}

/// {"name": ..., "configuration": {...}} with a name that is one of `names`; the index of the name.
struct Named {
  size_t name;
  JsonMembers configuration;
};

Result<Named> parse_named(JsonMembers& parent, const std::string& member, std::initializer_list<std::string_view> names) {
  static const Json kNoConfiguration = Json::object();
  MAXPORT_ASSIGN_OR_RETURN(const Json* value, parent.get(member));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(*value, parent.member_path(member)));
  MAXPORT_ASSIGN_OR_RETURN(const size_t name, members.choice("name", names));
  const Json* configuration = members.find("configuration");
  MAXPORT_RETURN_IF_ERROR(members.finish());
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers details, JsonMembers::of(configuration ? *configuration : kNoConfiguration,
                                                                members.member_path("configuration")));
  return Named{name, std::move(details)};
}

Result<KeyEncoding> parse_key_encoding(JsonMembers& members) {
  MAXPORT_ASSIGN_OR_RETURN(Named named, parse_named(members, "chunk_key_encoding", {"default", "v2"}));
  KeyEncoding encoding{.prefixed = named.name == 0, .separator = named.name == 0 ? '/' : '.'};
  if (named.configuration.find("separator")) {
    MAXPORT_ASSIGN_OR_RETURN(const size_t separator, named.configuration.choice("separator", {".", "/"}));
    encoding.separator = separator == 0 ? '.' : '/';
  }
  MAXPORT_RETURN_IF_ERROR(named.configuration.finish());
  return encoding;
}

/// Members that do not change what the array holds, and extensions that say so of themselves.
Result<> check_other_members(JsonMembers& members, const Json& document, size_t rank) {
  if (const Json* attributes = members.find("attributes"); attributes && !attributes->is_object())
    return fail(ErrorKind::kCorruptData, "{}: expected an object", members.member_path("attributes"));
  if (const Json* names = members.find("dimension_names"); names && !(names->is_array() && names->size() == rank))
    return fail(ErrorKind::kCorruptData, "{}: expected a list of {} names", members.member_path("dimension_names"), rank);
  if (const Json* list = members.find("storage_transformers"); list && *list != Json::array())
    return fail(ErrorKind::kUnsupported, "{}: not supported", members.member_path("storage_transformers"));
  for (const std::string& name : members.unknown()) {
    const Json& value = document[name];
    if (!value.is_object() || value.value("must_understand", Json()) != Json(false))
      return fail(ErrorKind::kUnsupported, "{}: unknown extension, not marked {{\"must_understand\": false}}",
                  members.member_path(name));
  }
  return {};
}

Result<ArraySpec> parse_v3(const Json& document, const std::string& what) {
  ArraySpec spec{.version = Version::kV3};
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(document, what));
  MAXPORT_RETURN_IF_ERROR(members.integer("zarr_format", 3, 3));
  MAXPORT_RETURN_IF_ERROR(members.choice("node_type", {"array"}));
  MAXPORT_ASSIGN_OR_RETURN(const Json* shape, members.get("shape"));
  MAXPORT_ASSIGN_OR_RETURN(spec.shape, parse_extents(*shape, 0, members.member_path("shape")));
  MAXPORT_ASSIGN_OR_RETURN(Named grid, parse_named(members, "chunk_grid", {"regular"}));
  MAXPORT_ASSIGN_OR_RETURN(const Json* chunks, grid.configuration.get("chunk_shape"));
  MAXPORT_RETURN_IF_ERROR(grid.configuration.finish());
  MAXPORT_ASSIGN_OR_RETURN(spec.chunk_shape, parse_extents(*chunks, 1, grid.configuration.member_path("chunk_shape")));
  MAXPORT_ASSIGN_OR_RETURN(const Json* data_type, members.get("data_type"));
  const auto dtype = data_type->is_string() ? dtype_from_name(data_type->get_ref<const std::string&>()) : std::nullopt;
  if (!dtype)
    return fail(ErrorKind::kUnsupported, "{}: element type {} is not supported", members.member_path("data_type"),
                printable(data_type->dump()));
  spec.dtype = *dtype;
  MAXPORT_RETURN_IF_ERROR(with_context(check_array_spec(spec, ErrorKind::kCorruptData), what));
  MAXPORT_ASSIGN_OR_RETURN(spec.key_encoding, parse_key_encoding(members));
  MAXPORT_ASSIGN_OR_RETURN(const Json* codecs, members.get("codecs"));
  MAXPORT_ASSIGN_OR_RETURN(spec.codecs,
                           parse_codecs(*codecs, spec.dtype, spec.chunk_shape, members.member_path("codecs")));
  MAXPORT_ASSIGN_OR_RETURN(const Json* fill, members.get("fill_value"));
  MAXPORT_ASSIGN_OR_RETURN(spec.fill_value,
                           parse_fill_value(Version::kV3, spec.dtype, *fill, members.member_path("fill_value")));
  MAXPORT_RETURN_IF_ERROR(check_other_members(members, document, spec.shape.size()));
  return spec;
}

std::string dtype_text_v2(DType dtype, bool big_endian) {
  std::string text(dtype_info(dtype).zarr2);
  if (big_endian && text[0] == '<') text[0] = '>';
  return text;
}

Json json_v2(const ArraySpec& spec) {
  const bool fortran = spec.codecs.front().kind == CodecKind::kTranspose;
  const size_t bytes = fortran ? 1 : 0;
  return {{"chunks", spec.chunk_shape},
          {"compressor", compressor_json(std::span(spec.codecs).subspan(bytes + 1))},
          {"dimension_separator", std::string(1, spec.key_encoding.separator)},
          {"dtype", dtype_text_v2(spec.dtype, spec.codecs[bytes].big_endian)},
          {"fill_value", fill_value_json(Version::kV2, spec.dtype, spec.fill_value)},
          {"filters", nullptr},
          {"order", fortran ? "F" : "C"},
          {"shape", spec.shape},
          {"zarr_format", 2}};
}

Json json_v3(const ArraySpec& spec) {
  const KeyEncoding& encoding = spec.key_encoding;
  Json keys = {{"name", encoding.prefixed ? "default" : "v2"}};
  if (encoding.separator != (encoding.prefixed ? '/' : '.'))
    keys["configuration"] = {{"separator", std::string(1, encoding.separator)}};
  return {{"chunk_grid", {{"configuration", {{"chunk_shape", spec.chunk_shape}}}, {"name", "regular"}}},
          {"chunk_key_encoding", std::move(keys)},
          {"codecs", codecs_json(spec.codecs, spec.dtype)},
          {"data_type", dtype_name(spec.dtype)},
          {"fill_value", fill_value_json(Version::kV3, spec.dtype, spec.fill_value)},
          {"node_type", "array"},
          {"shape", spec.shape},
          {"zarr_format", 3}};
}

}  // namespace

std::string_view metadata_key(Version version) { return version == Version::kV2 ? ".zarray" : "zarr.json"; }

std::string metadata_text(const ArraySpec& spec) {
  return (spec.version == Version::kV2 ? json_v2(spec) : json_v3(spec)).dump();
}

Result<ArraySpec> parse_metadata(Version version, std::string_view text, std::string_view what) {
  MAXPORT_ASSIGN_OR_RETURN(const Json document, parse_json(text, what, {.max_bytes = size_t{1} << 20}));
  return version == Version::kV2 ? parse_v2(document, std::string(what)) : parse_v3(document, std::string(what));
}

}  // namespace maxport::zarr
