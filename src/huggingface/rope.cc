#include "huggingface/rope.h"

#include <cmath>

#include "huggingface/config_fields.h"

namespace maxport::huggingface {
namespace {

/// Member of an object, or null when absent or JSON null.
const Json* member(const Json* object, std::string_view key) {
  if (object == nullptr) return nullptr;
  const auto at = object->find(key);
  return at == object->end() || at->is_null() ? nullptr : &*at;
}

const Json* object_member(const Json* object, std::string_view key) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_object() ? value : nullptr;
}

/// Older files say "type"; where both stand, "rope_type" is what the library reads.
std::string type_in(const Json& object) {
  for (const char* key : {"rope_type", "type"})
    if (const Json* value = member(&object, key); value && value->is_string()) return value->get<std::string>();
  return {};
}

/// What a type needs: neither theta, nor the type, nor objects for other kinds of layers.
Json other_parameters(const Json& object) {
  Json rest = Json::object();
  for (const auto& [key, value] : object.items())
    if (key != "rope_theta" && key != "rope_type" && key != "type" && key != "partial_rotary_factor" &&
        !value.is_object() && !value.is_null())
      rest[key] = value;
  return rest;
}

class RopeResolver {
 public:
  explicit RopeResolver(const RopeQuestion& question)
      : question_(question), local_(question.layer_type == "sliding_attention") {}

  Result<Rope> resolve() {
    MAXPORT_RETURN_IF_ERROR(find_places());
    MAXPORT_RETURN_IF_ERROR(find_theta());
    MAXPORT_RETURN_IF_ERROR(take_parameters(place_));
    MAXPORT_RETURN_IF_ERROR(take_parameters(legacy_));
    if (rope_.type.empty()) rope_.type = "default";
    MAXPORT_RETURN_IF_ERROR(take_partial(place_.object, place_.path + "."));
    MAXPORT_RETURN_IF_ERROR(take_partial(&question_.section, prefix()));
    return std::move(rope_);
  }

 private:
  struct Place {
    const Json* object = nullptr;
    std::string path;
  };

  std::string prefix() const { return question_.section_path.empty() ? "" : question_.section_path + "."; }

  Result<> find_places() {
    rope_.type.clear();
    for (const auto& [key, place] : {std::pair{"rope_parameters", &place_}, std::pair{"rope_scaling", &legacy_}}) {
      const Json* value = member(&question_.section, key);
      if (value == nullptr) continue;
      if (!value->is_object())
        return fail(ErrorKind::kCorruptData, "{}: {}{} is {}, expected an object", question_.what, prefix(), key,
                    json_kind(*value));
      *place = {value, prefix() + key};
    }
    flat_ = place_.object;
    std::string wanted = question_.layer_type;
    if (wanted.empty() && member(flat_, "rope_theta") == nullptr) wanted = "full_attention";
    if (const Json* entry = object_member(flat_, wanted)) {
      place_ = {entry, fmt::format("{}.{}", place_.path, wanted)};
      own_entry_ = true;
    }
    local_key_ = local_ && member(&question_.section, "rope_local_base_freq") != nullptr;
    // Where the local layers have settings of their own, the legacy scaling is for the others.
    if (local_ && (local_key_ || own_entry_ || has_local_default())) legacy_.object = nullptr;
    return {};
  }

  bool has_local_default() const { return class_default(question_.model_type, "rope_local_base_freq").has_value(); }

  Result<> find_theta() {
    MAXPORT_RETURN_IF_ERROR(take_theta(place_.object, "rope_theta", place_.path + "."));
    if (local_key_)
      MAXPORT_RETURN_IF_ERROR(take_theta(&question_.section, "rope_local_base_freq", prefix()));
    else if (!local_ || (!own_entry_ && !has_local_default()))
      MAXPORT_RETURN_IF_ERROR(take_theta(&question_.section, "rope_theta", prefix()));
    if (rope_.theta_source.empty())
      MAXPORT_RETURN_IF_ERROR(take_theta(flat_, "rope_theta", prefix() + "rope_parameters."));
    if (!rope_.theta_source.empty()) return {};
    auto known = local_ ? class_default(question_.model_type, "rope_local_base_freq") : std::nullopt;
    if (!known) known = class_default(question_.model_type, "rope_theta");
    if (!known)
      return fail(ErrorKind::kNotFound, "{}: neither {}rope_parameters.rope_theta nor {}rope_theta is there",
                  question_.what, prefix(), prefix());
    rope_.theta = *known;
    rope_.theta_source = fmt::format("default of {} in transformers", question_.model_type);
    return {};
  }

  Result<double> positive(const Json& value, const std::string& source) const {
    if (!value.is_number())
      return fail(ErrorKind::kCorruptData, "{}: {} is {}, expected a number", question_.what, source, json_kind(value));
    const double number = value.get<double>();
    if (number > 0 && std::isfinite(number)) return number;
    return fail(ErrorKind::kCorruptData, "{}: {} is {}, expected a positive number", question_.what, source, number);
  }

  Result<> take_theta(const Json* object, std::string_view key, const std::string& path) {
    const Json* value = member(object, key);
    if (value == nullptr) return {};
    const std::string source = path + std::string(key);
    MAXPORT_ASSIGN_OR_RETURN(const double theta, positive(*value, source));
    if (!rope_.theta_source.empty() && theta != rope_.theta)
      return fail(ErrorKind::kInvalidArgument, "{}: {} is {}, but {} is {}; they mean the same, correct one of them",
                  question_.what, rope_.theta_source, rope_.theta, source, theta);
    if (!rope_.theta_source.empty()) return {};
    rope_.theta = theta;
    rope_.theta_source = source;
    return {};
  }

  Result<> take_parameters(const Place& place) {
    if (place.object == nullptr) return {};
    const std::string type = type_in(*place.object);
    if (!type.empty() && !rope_.type.empty() && type != rope_.type)
      return fail(ErrorKind::kInvalidArgument, "{}: {} has type \"{}\", but {} has type \"{}\"; correct one of them",
                  question_.what, rope_.parameters_source, printable(rope_.type), place.path, printable(type));
    if (rope_.type.empty()) rope_.type = type;
    const Json rest = other_parameters(*place.object);
    for (const auto& [key, value] : rest.items()) {
      const Json* other = member(&rope_.parameters, key);
      if (other != nullptr && *other != value)
        return fail(ErrorKind::kInvalidArgument, "{}: {}.{} is {}, but {}.{} is {}; correct one of them",
                    question_.what, rope_.parameters_source, printable(key), printable(other->dump()), place.path,
                    printable(key), printable(value.dump()));
      rope_.parameters[key] = value;
    }
    if (rope_.parameters_source.empty()) rope_.parameters_source = place.path;
    return {};
  }

  Result<> take_partial(const Json* object, const std::string& path) {
    const Json* value = member(object, "partial_rotary_factor");
    if (value == nullptr) return {};
    MAXPORT_ASSIGN_OR_RETURN(const double factor, positive(*value, path + "partial_rotary_factor"));
    if (rope_.partial_rotary_factor && *rope_.partial_rotary_factor != factor)
      return fail(ErrorKind::kInvalidArgument, "{}: {}.partial_rotary_factor is {}, but {}partial_rotary_factor is {}",
                  question_.what, place_.path, *rope_.partial_rotary_factor, path, factor);
    rope_.partial_rotary_factor = factor;
    return {};
  }

  const RopeQuestion& question_;
  bool local_;
  const Json* flat_ = nullptr;  // rope_parameters itself
  Place place_;                 // rope_parameters, or its entry for the kind of layer
  Place legacy_;                // rope_scaling
  bool own_entry_ = false;      // place_ is an entry of its own
  bool local_key_ = false;      // the legacy key for local layers is there
  Rope rope_;
};

}  // namespace

Result<Rope> resolve_rope(const RopeQuestion& question) { return RopeResolver(question).resolve(); }

}  // namespace maxport::huggingface
