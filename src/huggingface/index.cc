#include "huggingface/index.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "safetensors/header.h"

namespace maxport::huggingface {
namespace {

using safetensors::quoted_name;

std::string folded(std::string_view name) {
  std::string out(name);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

Result<> check_file_name(const std::string& tensor, const Json& value, std::string_view own_name,
                         std::string_view what) {
  if (!value.is_string())
    return fail(ErrorKind::kCorruptData, "{}: weight_map: {} is {}, expected the name of a file", what,
                quoted_name(tensor), json_kind(value));
  const auto& name = value.get_ref<const std::string&>();
  if (!is_plain_relative_path(name))
    return fail(ErrorKind::kCorruptData,
                "{}: weight_map: {} lies in {}, which is not the name of a file in the model's "
                "folder",
                what, quoted_name(tensor), quoted_name(name));
  if (name == own_name)
    return fail(ErrorKind::kCorruptData, "{}: weight_map: {} lies in the index itself", what, quoted_name(tensor));
  if (!name.ends_with(".safetensors"))
    return fail(ErrorKind::kUnsupported, "{}: weight_map: {} lies in {}, which is not a safetensors file", what,
                quoted_name(tensor), quoted_name(name));
  return {};
}

/// On file systems that ignore case, and on those that do not, such an index would mean different models.
Result<std::vector<std::string>> distinct_files(const Index& index, std::string_view what) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : index.weight_map) names.insert(file);
  std::map<std::string, std::string> seen;
  for (const std::string& name : names)
    if (const auto [at, is_new] = seen.emplace(folded(name), name); !is_new)
      return fail(ErrorKind::kCorruptData, "{}: weight_map names {} and {}, which differ only by case", what,
                  quoted_name(at->second), quoted_name(name));
  return std::vector<std::string>(names.begin(), names.end());
}

void read_metadata(const Json& document, Index& index, std::string_view what) {
  const auto metadata = document.find("metadata");
  if (metadata == document.end()) return;
  if (!metadata->is_object()) {
    index.warnings.push_back(
        fmt::format("{}: metadata is {}, expected an object; ignored", what, json_kind(*metadata)));
    return;
  }
  const auto total = metadata->find("total_size");
  if (total == metadata->end()) return;
  if (total->is_number_unsigned()) {
    index.total_size = total->get<uint64_t>();
  } else {
    index.warnings.push_back(fmt::format("{}: metadata.total_size is {}, expected a non-negative integer; ignored",
                                         what, quoted_name(total->dump(-1, ' ', true))));
  }
}

}  // namespace

bool is_plain_relative_path(std::string_view name) {
  if (name.empty() || name.size() > 4096) return false;
  for (const char c : name)
    if (c == '\\' || c == ':' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  while (true) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    if (part.size() == name.size()) return true;
    name.remove_prefix(part.size() + 1);
  }
}

Result<Index> parse_index(std::string_view text, std::string_view own_name, std::string_view what) {
  MAXPORT_ASSIGN_OR_RETURN(const Json document, parse_json(text, what, {.max_bytes = kMaxIndexBytes}));
  if (!document.is_object())
    return fail(ErrorKind::kCorruptData, "{}: is {}, expected an object", what, json_kind(document));
  const auto map = document.find("weight_map");
  if (map == document.end()) return fail(ErrorKind::kCorruptData, "{}: weight_map is missing", what);
  if (!map->is_object())
    return fail(ErrorKind::kCorruptData, "{}: weight_map is {}, expected an object", what, json_kind(*map));
  if (map->empty()) return fail(ErrorKind::kCorruptData, "{}: weight_map lists no tensor", what);
  Index index;
  for (const auto& [tensor, value] : map->items()) {
    MAXPORT_RETURN_IF_ERROR(check_file_name(tensor, value, own_name, what));
    index.weight_map.emplace(tensor, value.get_ref<const std::string&>());
  }
  MAXPORT_ASSIGN_OR_RETURN(index.files, distinct_files(index, what));
  read_metadata(document, index, what);
  return index;
}

}  // namespace maxport::huggingface
