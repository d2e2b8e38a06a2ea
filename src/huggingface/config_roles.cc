#include "huggingface/config_roles.h"

#include <algorithm>
#include <array>

#include "huggingface/config_fields.h"

namespace maxport::huggingface {
namespace {

constexpr std::array<std::string_view, 2> kDecoderSections = {"thinker_config.text_config", "text_config"};

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

/// A nested object that only repeats a field or two does not describe the decoder.
bool describes_decoder(const Json& object) {
  return object.contains("hidden_size") || object.contains("num_hidden_layers");
}

}  // namespace

const Json* object_at(const Json& root, std::string_view dotted_path) {
  const Json* at = &root;
  while (!dotted_path.empty()) {
    const std::string step(dotted_path.substr(0, dotted_path.find('.')));
    dotted_path.remove_prefix(std::min(step.size() + 1, dotted_path.size()));
    const auto next = at->find(step);
    if (next == at->end() || !next->is_object()) return nullptr;
    at = &*next;
  }
  return at;
}

Result<ConfigRoles> ConfigRoles::create(Json config, std::string what) {
  if (!config.is_object())
    return fail(ErrorKind::kCorruptData, "{}: is {}, expected an object", what, json_kind(config));
  ConfigRoles roles;
  roles.document_ = std::make_shared<const Json>(std::move(config));
  roles.section_ = roles.document_.get();
  roles.what_ = std::move(what);
  for (std::string_view path : kDecoderSections) {
    if (const Json* nested = object_at(*roles.document_, path); nested != nullptr && describes_decoder(*nested)) {
      roles.section_ = nested;
      roles.section_path_ = path;
      break;
    }
  }
  MAXPORT_RETURN_IF_ERROR(roles.check_fields());
  MAXPORT_RETURN_IF_ERROR(roles.stated_tie());
  return roles;
}

Result<std::optional<ConfigRoles>> ConfigRoles::section(std::string_view dotted_path) const {
  const Json* nested = object_at(*document_, dotted_path);
  if (nested == nullptr) return std::nullopt;
  ConfigRoles roles = *this;
  roles.section_ = nested;
  roles.section_path_ = dotted_path;
  MAXPORT_RETURN_IF_ERROR(roles.check_fields());
  return roles;
}

Result<> ConfigRoles::check_fields() const {
  for (const IntegerField& field : integer_fields()) {
    // Vision configs may give a pair (height, width) where decoders have one number.
    MAXPORT_ASSIGN_OR_RETURN(const Found found, find(field.role));
    if (found.value == nullptr || found.value->is_array()) continue;
    MAXPORT_RETURN_IF_ERROR(optional_integer(field.role));
  }
  MAXPORT_RETURN_IF_ERROR(layer_types());
  MAXPORT_ASSIGN_OR_RETURN(const auto heads, optional_integer("num_attention_heads"));
  MAXPORT_ASSIGN_OR_RETURN(const auto groups, optional_integer("num_key_value_heads"));
  if (heads && groups && *heads % *groups != 0)
    return fail(ErrorKind::kInvalidArgument, "{}: {} is {}, which is not a multiple of {}, {}", what_,
                source_of("num_attention_heads"), *heads, source_of("num_key_value_heads"), *groups);
  return {};
}

std::string ConfigRoles::path_of(std::string_view key) const {
  return section_path_.empty() ? std::string(key) : fmt::format("{}.{}", section_path_, key);
}

Result<ConfigRoles::Found> ConfigRoles::find(std::string_view role) const {
  Found found;
  const auto consider = [&](std::string_view spelling) -> Result<> {
    const auto at = section_->find(spelling);
    if (at == section_->end()) return {};
    if (at->is_null()) {
      found.stated_null = true;
      return {};
    }
    if (found.value == nullptr) {
      found.value = &*at;
      found.source = path_of(spelling);
    } else if (*found.value != *at && spellings_must_agree(role)) {
      return fail(ErrorKind::kInvalidArgument, "{}: {} is {} but {} is {}; they mean the same, correct one of them",
                  what_, found.source, shown(*found.value), path_of(spelling), shown(*at));
    }
    return {};
  };
  MAXPORT_RETURN_IF_ERROR(consider(role));
  for (std::string_view spelling : other_spellings(role)) MAXPORT_RETURN_IF_ERROR(consider(spelling));
  return found;
}

bool ConfigRoles::has(std::string_view role) const {
  const auto found = find(role);
  return found && found->value != nullptr;
}

std::string ConfigRoles::model_type() const {
  const auto at = document_->find("model_type");
  return at != document_->end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::string ConfigRoles::section_model_type() const {
  const auto at = section_->find("model_type");
  return at != section_->end() && at->is_string() ? at->get<std::string>() : model_type();
}

std::vector<std::string> ConfigRoles::architectures() const {
  std::vector<std::string> names;
  const auto at = document_->find("architectures");
  if (at == document_->end() || !at->is_array()) return names;
  for (const Json& name : *at)
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

Result<std::optional<int64_t>> ConfigRoles::derived_integer(std::string_view role) const {
  if (role == "num_key_value_heads") return optional_integer("num_attention_heads");
  if (role != "head_dim") return std::nullopt;
  MAXPORT_ASSIGN_OR_RETURN(const auto hidden, optional_integer("hidden_size"));
  MAXPORT_ASSIGN_OR_RETURN(const auto heads, optional_integer("num_attention_heads"));
  if (!hidden || !heads) return std::nullopt;
  // A model may have no head_dim at all (latent attention), so this is nothing rather than an error.
  if (*hidden % *heads != 0) return std::nullopt;
  return *hidden / *heads;
}

Result<std::optional<int64_t>> ConfigRoles::optional_integer(std::string_view role) const {
  MAXPORT_ASSIGN_OR_RETURN(const Found found, find(role));
  if (found.value == nullptr) {
    if (!found.stated_null)
      if (const auto known = class_default(section_model_type(), role)) return static_cast<int64_t>(*known);
    return derived_integer(role);
  }
  if (!found.value->is_number_integer())
    return fail(ErrorKind::kCorruptData, "{}: {} is {} ({}), expected an integer", what_, found.source,
                json_kind(*found.value), shown(*found.value));
  const bool fits = !found.value->is_number_unsigned() || found.value->get<uint64_t>() <= uint64_t{INT64_MAX};
  const int64_t value = fits ? found.value->get<int64_t>() : INT64_MAX;
  for (const IntegerField& field : integer_fields()) {
    if (field.role != role) continue;
    if (value > field.most)
      return fail(ErrorKind::kResourceLimit, "{}: {} is {}, more than the limit of {}", what_, found.source,
                  shown(*found.value), field.most);
    if (value < field.least)
      return fail(ErrorKind::kCorruptData, "{}: {} is {}, expected at least {}", what_, found.source, value,
                  field.least);
  }
  if (!fits)
    return fail(ErrorKind::kResourceLimit, "{}: {} is {}, more than 2^63-1", what_, found.source, shown(*found.value));
  return value;
}

Result<int64_t> ConfigRoles::integer(std::string_view role) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto value, optional_integer(role));
  if (value) return *value;
  if (role == "head_dim" && has("hidden_size") && has("num_attention_heads"))
    return fail(ErrorKind::kNotFound,
                "{}: head_dim is missing, and hidden_size is not a multiple of "
                "num_attention_heads; state head_dim",
                what_);
  return fail(ErrorKind::kNotFound, "{}: {} is missing", what_, path_of(role));
}

Result<int64_t> ConfigRoles::integer_or(std::string_view role, int64_t fallback) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto value, optional_integer(role));
  return value.value_or(fallback);
}

Result<std::optional<double>> ConfigRoles::optional_number(std::string_view role) const {
  MAXPORT_ASSIGN_OR_RETURN(const Found found, find(role));
  if (found.value == nullptr) {
    if (found.stated_null) return std::nullopt;
    return class_default(section_model_type(), role);
  }
  if (!found.value->is_number())
    return fail(ErrorKind::kCorruptData, "{}: {} is {} ({}), expected a number", what_, found.source,
                json_kind(*found.value), shown(*found.value));
  return found.value->get<double>();
}

Result<double> ConfigRoles::number(std::string_view role) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto value, optional_number(role));
  if (!value) return fail(ErrorKind::kNotFound, "{}: {} is missing", what_, path_of(role));
  return *value;
}

Result<double> ConfigRoles::number_or(std::string_view role, double fallback) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto value, optional_number(role));
  return value.value_or(fallback);
}

Result<std::optional<bool>> ConfigRoles::optional_boolean(std::string_view role) const {
  MAXPORT_ASSIGN_OR_RETURN(const Found found, find(role));
  if (found.value == nullptr) return std::nullopt;
  if (!found.value->is_boolean())
    return fail(ErrorKind::kCorruptData, "{}: {} is {} ({}), expected true or false", what_, found.source,
                json_kind(*found.value), shown(*found.value));
  return found.value->get<bool>();
}

Result<bool> ConfigRoles::boolean(std::string_view role) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto value, optional_boolean(role));
  if (!value) return fail(ErrorKind::kNotFound, "{}: {} is missing", what_, path_of(role));
  return *value;
}

Result<bool> ConfigRoles::boolean_or(std::string_view role, bool fallback) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto value, optional_boolean(role));
  return value.value_or(fallback);
}

Result<std::optional<std::string>> ConfigRoles::optional_text(std::string_view role) const {
  MAXPORT_ASSIGN_OR_RETURN(const Found found, find(role));
  if (found.value == nullptr) return std::nullopt;
  if (!found.value->is_string())
    return fail(ErrorKind::kCorruptData, "{}: {} is {} ({}), expected a string", what_, found.source,
                json_kind(*found.value), shown(*found.value));
  return found.value->get<std::string>();
}

Result<std::string> ConfigRoles::text(std::string_view role) const {
  MAXPORT_ASSIGN_OR_RETURN(auto value, optional_text(role));
  if (!value) return fail(ErrorKind::kNotFound, "{}: {} is missing", what_, path_of(role));
  return std::move(*value);
}

Result<std::vector<int64_t>> ConfigRoles::integers(std::string_view role) const {
  MAXPORT_ASSIGN_OR_RETURN(const Found found, find(role));
  std::vector<int64_t> values;
  if (found.value == nullptr) return values;
  const bool good = found.value->is_array() &&
                    std::ranges::all_of(*found.value, [](const Json& item) { return item.is_number_integer(); });
  if (!good)
    return fail(ErrorKind::kCorruptData, "{}: {} is {}, expected a list of integers", what_, found.source,
                shown(*found.value));
  for (const Json& item : *found.value) values.push_back(item.get<int64_t>());
  return values;
}

Result<std::vector<std::string>> ConfigRoles::texts(std::string_view role) const {
  MAXPORT_ASSIGN_OR_RETURN(const Found found, find(role));
  std::vector<std::string> values;
  if (found.value == nullptr) return values;
  const bool good =
      found.value->is_array() && std::ranges::all_of(*found.value, [](const Json& item) { return item.is_string(); });
  if (!good)
    return fail(ErrorKind::kCorruptData, "{}: {} is {}, expected a list of strings", what_, found.source,
                shown(*found.value));
  for (const Json& item : *found.value) values.push_back(item.get<std::string>());
  return values;
}

Result<std::vector<std::string>> ConfigRoles::layer_types() const {
  MAXPORT_ASSIGN_OR_RETURN(auto types, texts("layer_types"));
  if (!has("layer_types")) return types;
  MAXPORT_ASSIGN_OR_RETURN(const auto layers, optional_integer("num_hidden_layers"));
  if (layers && static_cast<int64_t>(types.size()) != *layers)
    return fail(ErrorKind::kCorruptData, "{}: {} has {} entries, but {} is {}", what_, path_of("layer_types"),
                types.size(), source_of("num_hidden_layers"), *layers);
  return types;
}

Result<Rope> ConfigRoles::rope(std::string_view layer_type) const {
  return resolve_rope({*section_, section_path_, section_model_type(), std::string(layer_type), what_});
}

std::string ConfigRoles::source_of(std::string_view role) const {
  const auto found = find(role);
  if (found && found->value != nullptr) return found->source;
  if (found && !found->stated_null && class_default(section_model_type(), role))
    return fmt::format("default of {} in transformers", section_model_type());
  if (role == "head_dim" && has("hidden_size") && has("num_attention_heads"))
    return "hidden_size / num_attention_heads";
  if (role == "num_key_value_heads" && has("num_attention_heads")) return "num_attention_heads";
  return "absent";
}

}  // namespace maxport::huggingface
