// The questions to a config that take more than one field: rotary settings, tied head, quantisation, notes.
#include <algorithm>
#include <array>
#include <cmath>

#include "huggingface/config_fields.h"
#include "huggingface/config_roles.h"

namespace maxport::huggingface {
namespace {

/// Member of an object, or null when absent or JSON null.
const Json* member(const Json& object, std::string_view key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

/// One place where rotary settings are written.
struct RopeSource {
  const Json* object = nullptr;
  std::string path;
};

std::string type_in(const Json& object) {
  // Older files say "type"; where both stand, "rope_type" is what the library reads.
  for (const char* key : {"rope_type", "type"})
    if (const Json* value = member(object, key); value && value->is_string()) return value->get<std::string>();
  return {};
}

/// Everything but theta, type and objects for other kinds of layers.
Json other_parameters(const Json& object) {
  Json rest = Json::object();
  for (const auto& [key, value] : object.items())
    if (key != "rope_theta" && key != "rope_type" && key != "type" && key != "partial_rotary_factor" &&
        !value.is_object() && !value.is_null())
      rest[key] = value;
  return rest;
}

}  // namespace

Result<double> ConfigRoles::positive(const Json& value, const std::string& source) const {
  if (!value.is_number())
    return fail(ErrorKind::kCorruptData, "{}: {} is {}, expected a number", what_, source, json_kind(value));
  const double number = value.get<double>();
  if (!(number > 0) || !std::isfinite(number))
    return fail(ErrorKind::kCorruptData, "{}: {} is {}, expected a positive number", what_, source, number);
  return number;
}

Result<Rope> ConfigRoles::rope(std::string_view layer_type) const {
  RopeSource nested, legacy;
  const bool local = layer_type == "sliding_attention";
  bool own_entry = false;
  for (const auto& [key, target] : {std::pair{"rope_parameters", &nested}, std::pair{"rope_scaling", &legacy}}) {
    const Json* value = member(*section_, key);
    if (value == nullptr) continue;
    if (!value->is_object())
      return fail(ErrorKind::kCorruptData, "{}: {} is {}, expected an object", what_, path_of(key), json_kind(*value));
    *target = {value, path_of(key)};
  }
  const Json* flat = nested.object;
  if (flat != nullptr) {
    const std::string wanted(layer_type.empty() && !member(*flat, "rope_theta") ? "full_attention" : layer_type);
    if (const Json* entry = wanted.empty() ? nullptr : member(*flat, wanted); entry && entry->is_object()) {
      nested = {entry, fmt::format("{}.{}", nested.path, wanted)};
      own_entry = true;
    }
  }
  // Next to one base for all layers, the legacy spelling has a second one for the local layers only.
  const bool local_key = local && has("rope_local_base_freq");
  const std::string legacy_theta = local_key ? "rope_local_base_freq" : "rope_theta";
  if (local && (local_key || (own_entry && nested.object != flat))) legacy.object = nullptr;

  Rope rope;
  const auto take_theta = [&](const Json* value, const std::string& source) -> Result<> {
    if (value == nullptr) return {};
    MAXPORT_ASSIGN_OR_RETURN(const double theta, positive(*value, source));
    if (!rope.theta_source.empty() && theta != rope.theta)
      return fail(ErrorKind::kCorruptData, "{}: {} is {}, but {} is {}; they mean the same, correct one of them", what_,
                  rope.theta_source, rope.theta, source, theta);
    if (rope.theta_source.empty()) rope.theta = theta, rope.theta_source = source;
    return {};
  };
  if (nested.object != nullptr)
    MAXPORT_RETURN_IF_ERROR(take_theta(member(*nested.object, "rope_theta"), nested.path + ".rope_theta"));
  if (!(local && own_entry && !local_key))
    MAXPORT_RETURN_IF_ERROR(take_theta(member(*section_, legacy_theta), path_of(legacy_theta)));
  if (rope.theta_source.empty() && flat != nullptr)
    MAXPORT_RETURN_IF_ERROR(take_theta(member(*flat, "rope_theta"), path_of("rope_parameters.rope_theta")));
  if (rope.theta_source.empty()) {
    auto known = local ? class_default(section_model_type(), "rope_local_base_freq") : std::nullopt;
    if (!known) known = class_default(section_model_type(), "rope_theta");
    if (!known)
      return fail(ErrorKind::kNotFound, "{}: neither {} nor {} is there", what_, path_of("rope_parameters.rope_theta"),
                  path_of("rope_theta"));
    rope.theta = *known;
    rope.theta_source = fmt::format("default of {} in transformers", section_model_type());
  }

  for (const RopeSource& source : {nested, legacy}) {
    if (source.object == nullptr) continue;
    const std::string type = type_in(*source.object);
    const Json rest = other_parameters(*source.object);
    if (rope.parameters_source.empty()) {
      rope.type = type.empty() ? "default" : type;
      rope.parameters = rest;
      rope.parameters_source = source.path;
      continue;
    }
    if (!type.empty() && type != rope.type)
      return fail(ErrorKind::kCorruptData, "{}: {} has type \"{}\", but {} has type \"{}\"; correct one of them", what_,
                  rope.parameters_source, printable(rope.type), source.path, printable(type));
    for (const auto& [key, value] : rest.items()) {
      const Json* other = member(rope.parameters, key);
      if (other != nullptr && *other != value)
        return fail(ErrorKind::kCorruptData, "{}: {}.{} is {}, but {}.{} is {}; correct one of them", what_,
                    rope.parameters_source, key, other->dump(), source.path, key, value.dump());
      rope.parameters[key] = value;
    }
  }
  for (const auto& [object, path] : {std::pair{nested.object, nested.path}, std::pair{section_, section_path_}}) {
    const Json* factor = object == nullptr ? nullptr : member(*object, "partial_rotary_factor");
    if (factor == nullptr) continue;
    const std::string source = path.empty() ? "partial_rotary_factor" : path + ".partial_rotary_factor";
    MAXPORT_ASSIGN_OR_RETURN(const double value, positive(*factor, source));
    if (rope.partial_rotary_factor && *rope.partial_rotary_factor != value)
      return fail(ErrorKind::kCorruptData, "{}: partial_rotary_factor is {} in {}, but {} is {}", what_,
                  *rope.partial_rotary_factor, nested.path, source, value);
    rope.partial_rotary_factor = value;
  }
  return rope;
}

Result<TiedHead> ConfigRoles::tied_head(bool head_in_files) const {
  constexpr std::string_view kKey = "tie_word_embeddings";
  std::optional<TiedHead> decision;
  // This section, then each level around it.
  std::string path = section_path_;
  const Json* level = section_;
  while (true) {
    if (const Json* value = member(*level, kKey)) {
      const std::string source = path.empty() ? std::string(kKey) : fmt::format("{}.{}", path, kKey);
      if (!value->is_boolean())
        return fail(ErrorKind::kCorruptData, "{}: {} is {}, expected true or false", what_, source, json_kind(*value));
      if (decision && decision->tied != value->get<bool>())
        return fail(ErrorKind::kCorruptData,
                    "{}: {} is {}, but {} is {}; say which one holds with --head tie or --head untie", what_,
                    decision->source, decision->tied, source, value->get<bool>());
      if (!decision) decision = TiedHead{value->get<bool>(), source};
    }
    if (path.empty()) break;
    const size_t dot = path.rfind('.');
    path = dot == std::string::npos ? std::string() : path.substr(0, dot);
    level = document_.get();
    for (std::string_view rest = path; !rest.empty();) {
      const std::string step(rest.substr(0, rest.find('.')));
      rest.remove_prefix(std::min(step.size() + 1, rest.size()));
      level = &level->at(step);
    }
  }
  if (decision) return *decision;
  return head_in_files ? TiedHead{false, "tie_word_embeddings is absent; the files hold a head"}
                       : TiedHead{true, "tie_word_embeddings is absent; the files hold no head"};
}

Result<std::optional<Quantization>> ConfigRoles::quantization() const {
  for (const auto& [object, prefix] : {std::pair{document_.get(), std::string()}, std::pair{section_, section_path_}}) {
    for (const char* key : {"quantization_config", "compression_config"}) {
      const Json* config = member(*object, key);
      if (config == nullptr || (config->is_object() && config->empty())) continue;
      const std::string source = prefix.empty() ? std::string(key) : fmt::format("{}.{}", prefix, key);
      const Json* method = config->is_object() ? member(*config, "quant_method") : nullptr;
      if (method == nullptr || !method->is_string())
        return fail(ErrorKind::kUnsupported, "{}: {} names no quant_method, so its weights cannot be read", what_,
                    source);
      const std::string name = method->get<std::string>();
      if (name != "fp8" && name != "mxfp4")
        return fail(ErrorKind::kUnsupported,
                    "{}: weights quantised with {} cannot be converted (fp8 and mxfp4 can); use the model's unquantised "
                    "weights", what_, printable(name));
      return Quantization{name, source, *config};
    }
  }
  return std::nullopt;
}

std::vector<std::string> ConfigRoles::notes() const {
  std::vector<std::string> notes;
  const auto names = architectures();
  if (names.empty()) notes.push_back(fmt::format("{}: architectures is empty; going by model_type", what_));
  if (names.size() > 1)
    notes.push_back(fmt::format("{}: architectures has {} entries; going by model_type", what_, names.size()));
  if (document_->contains("auto_map"))
    notes.push_back(fmt::format("{}: auto_map points at code in the repository; it is never run", what_));
  return notes;
}

}  // namespace maxport::huggingface
