#include "maxtext/settings.h"

#include <algorithm>

#include "maxtext/catalog.h"
#include "maxtext/known_settings.h"
#include "maxtext/spelling.h"
#include "maxtext/yaml_value.h"

namespace maxport::maxtext {
namespace {

// MaxText's own files inherit once or twice.
constexpr int kMaxInheritance = 10;
constexpr uint64_t kMaxFileBytes = uint64_t{4} << 20;

using Layer = std::map<std::string, Setting, std::less<>>;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string without_instruct(std::string name) {
  constexpr std::string_view kInstruct = "-Instruct";
  if (const size_t at = name.find(kInstruct); at != std::string::npos) name.erase(at, kInstruct.size());
  return name;
}

std::string spelt_with_underscores(std::string key) {
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string upper_case(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

Setting defaulted(const Json& value) { return {value, SettingOrigin::kDefault, "MaxText's defaults"}; }

}  // namespace

/// Builds one Settings from its layers. The order of the steps is MaxText's.
class SettingsLoader {
 public:
  SettingsLoader(Storage& storage, const SettingsRequest& request) : storage_(storage), request_(request) {}

  Result<Settings> load() {
    MAXPORT_RETURN_IF_ERROR(load_base());
    MAXPORT_RETURN_IF_ERROR(load_overrides());
    MAXPORT_RETURN_IF_ERROR(load_model());
    MAXPORT_RETURN_IF_ERROR(apply_model());
    for (auto& [key, setting] : overrides_) result_.settings_[key] = setting;
    MAXPORT_RETURN_IF_ERROR(apply_environment());
    return std::move(result_);
  }

 private:
  Result<> load_base() {
    for (const auto& [key, known] : known_settings())
      if (known.fallback) result_.settings_.emplace(key, defaulted(*known.fallback));
    if (!request_.base_file) return {};
    MAXPORT_ASSIGN_OR_RETURN(base_path_, existing_file(*request_.base_file));
    if (!base_path_) {
      result_.notes_.push_back(fmt::format("{} is not there; the defaults of MaxText 0.2.5 are used in its place",
                                           printable(*request_.base_file)));
      return {};
    }
    MAXPORT_ASSIGN_OR_RETURN(Layer layer, file_with_parents(*base_path_, 0));
    for (auto& [key, setting] : layer) result_.settings_.insert_or_assign(key, std::move(setting));
    return {};
  }

  /// The path itself, or below "src/" as MaxText looks, or nothing.
  Result<std::optional<std::string>> existing_file(const std::string& path) {
    for (const std::string& candidate : {path, join_path("src", path)}) {
      MAXPORT_ASSIGN_OR_RETURN(auto kind, storage_.kind(candidate));
      if (kind == EntryKind::kFile) return candidate;
      if (kind && candidate == path)
        return fail(ErrorKind::kInvalidArgument, "reading the configuration {}: it is no regular file", printable(path));
      if (path.starts_with('/')) break;
    }
    return std::nullopt;
  }

  Result<Layer> file_with_parents(const std::string& path, int depth) {
    if (depth > kMaxInheritance)
      return fail(ErrorKind::kInvalidArgument, "reading {}: more than {} files inherit from one another by base_config",
                  printable(path), kMaxInheritance);
    MAXPORT_ASSIGN_OR_RETURN(Layer own, file_layer(path, SettingOrigin::kBaseFile, path));
    const auto parent = own.find("base_config");
    if (parent == own.end() || !parent->second.value.is_string()) return own;
    const std::string name = parent->second.value.get<std::string>();
    own.erase(parent);
    MAXPORT_ASSIGN_OR_RETURN(Layer merged, parent_layer(path, name, depth));
    for (auto& [key, setting] : own) merged.insert_or_assign(key, std::move(setting));
    return merged;
  }

  /// MaxText's own base.yml stands behind every file, so only other parents have to be found.
  Result<Layer> parent_layer(const std::string& path, const std::string& name, int depth) {
    const std::string beside = name.starts_with('/') ? name : join_path(folder_of(path), name);
    MAXPORT_ASSIGN_OR_RETURN(auto kind, storage_.kind(beside));
    if (kind == EntryKind::kFile) return file_with_parents(beside, depth + 1);
    if (name == "base.yml") return Layer{};
    return fail(ErrorKind::kNotFound, "reading {}: it inherits from {} by base_config, which is not there",
                printable(path), printable(beside));
  }

  Result<Layer> file_layer(const std::string& path, SettingOrigin origin, const std::string& source) {
    MAXPORT_ASSIGN_OR_RETURN(std::string text, storage_.read_text(path, kMaxFileBytes));
    MAXPORT_ASSIGN_OR_RETURN(auto members, parse_yaml_mapping(text, "reading " + printable(path)));
    Layer layer;
    std::vector<std::string> unknown;
    for (auto& [key, value] : members) {
      if (!known_settings().contains(key)) unknown.push_back(printable(key));
      MAXPORT_RETURN_IF_ERROR(with_context(
          add(layer, key, std::move(value), std::nullopt, origin, source), "reading " + printable(path)));
    }
    if (!unknown.empty())
      result_.notes_.push_back(
          fmt::format("{} sets what MaxText 0.2.5 does not know: {}", printable(path), joined(unknown)));
    return layer;
  }

  /// Puts a value into a layer; mappings of nested settings become dotted ones.
  Result<> add(Layer& layer, const std::string& key, Json value, std::optional<std::string_view> raw,
               SettingOrigin origin, const std::string& source) {
    const auto known = known_settings().find(key);
    if (known == known_settings().end()) {
      layer.insert_or_assign(key, Setting{std::move(value), origin, source});
      return {};
    }
    MAXPORT_ASSIGN_OR_RETURN(Json coerced, coerce_setting(key, known->second, std::move(value), raw));
    if (known->second.type != SettingType::kObject || known->second.fallback) {
      layer.insert_or_assign(key, Setting{std::move(coerced), origin, source});
      return {};
    }
    for (auto& [name, item] : coerced.items()) {
      const std::string dotted = key + "." + name;
      if (!known_settings().contains(dotted)) return unknown_key(dotted);
      MAXPORT_RETURN_IF_ERROR(add(layer, dotted, item, std::nullopt, origin, source));
    }
    return {};
  }

  Result<> unknown_key(std::string_view key) const {
    return fail(ErrorKind::kInvalidArgument, "{} is no setting of MaxText 0.2.5{}", printable(key),
                did_you_mean(nearest_settings(key)));
  }

  Result<> load_overrides() {
    for (const Override& word : request_.overrides) {
      std::string key = word.key;
      const auto is_known = [&] { return known_settings().contains(key) || result_.settings_.contains(key); };
      if (!is_known()) key = spelt_with_underscores(key);
      if (!is_known()) return unknown_key(word.key);
      auto value = parse_yaml_value(word.value, key);
      // Text with a stray bracket or colon is still text.
      Json parsed = value ? *std::move(value) : Json(word.value);
      MAXPORT_RETURN_IF_ERROR(with_context(
          add(overrides_, key, std::move(parsed), word.value, SettingOrigin::kCommandLine, "the command line"),
          "reading the command line"));
    }
    return {};
  }

  const Setting* before_model(std::string_view key) const {
    if (const auto found = overrides_.find(key); found != overrides_.end()) return &found->second;
    const auto found = result_.settings_.find(key);
    return found == result_.settings_.end() ? nullptr : &found->second;
  }

  bool override_model_config() const {
    const Setting* setting = before_model("override_model_config");
    return setting && setting->value == true;
  }

  Result<> load_model() {
    const Setting* setting = before_model("model_name");
    if (!setting || !setting->value.is_string() || setting->value == "default" || setting->value == "") return {};
    result_.model_name_ = setting->value.get<std::string>();
    const std::string name = without_instruct(*result_.model_name_);
    if (name.find('/') != std::string::npos)
      return fail(ErrorKind::kInvalidArgument, "model_name is {}, expected a name without '/'", printable(name));
    if (base_path_) {
      const std::string folder = folder_of(*base_path_);
      for (const std::string& above : {folder, folder_of(folder)}) {
        const std::string path = join_path(join_path(above, "models"), name + ".yml");
        MAXPORT_ASSIGN_OR_RETURN(auto kind, storage_.kind(path));
        if (kind != EntryKind::kFile) continue;
        MAXPORT_ASSIGN_OR_RETURN(model_, file_layer(path, SettingOrigin::kModelFile, path));
        model_.erase("base_config");
        return {};
      }
    }
    return load_catalog_model(name);
  }

  Result<> load_catalog_model(const std::string& name) {
    MAXPORT_ASSIGN_OR_RETURN(const CatalogEntry* entry, find_model(*result_.model_name_));
    for (const auto& [key, value] : entry->settings.items())
      MAXPORT_RETURN_IF_ERROR(add(model_, key, value, std::nullopt, SettingOrigin::kModelFile,
                                  "the model file of " + name));
    return {};
  }

  /// A key of the model file may be given again only with the same value, unless the user insists.
  Result<> apply_model() {
    std::vector<std::string> differing;
    for (const auto& [key, setting] : model_) {
      const auto given = overrides_.find(key);
      if (given != overrides_.end() && given->second.value != setting.value)
        differing.push_back(fmt::format("{} (the model's {}, given {})", key, shown_setting(key, setting.value),
                                        shown_setting(key, given->second.value)));
      result_.settings_.insert_or_assign(key, setting);
    }
    if (differing.empty() || override_model_config()) return {};
    return fail(ErrorKind::kInvalidArgument,
                "the command line changes settings that model_name={} fixes: {}; add override_model_config=true if that is "
                "meant",
                printable(*result_.model_name_), joined(differing));
  }

  Result<> apply_environment() {
    for (auto& [key, setting] : result_.settings_) {
      const std::string variable = "M_" + upper_case(key);
      const auto found = request_.environment.find(variable);
      if (found == request_.environment.end()) continue;
      if (overrides_.contains(key))
        return fail(ErrorKind::kInvalidArgument, "{} is given on the command line and by the variable {}; use one of them",
                    key, variable);
      if (model_.contains(key) && !override_model_config())
        return fail(ErrorKind::kInvalidArgument,
                    "the variable {} changes a setting that model_name={} fixes; add override_model_config=true if that is "
                    "meant",
                    variable, printable(*result_.model_name_));
      MAXPORT_ASSIGN_OR_RETURN(Json value, environment_value(key, setting.value, found->second, variable));
      setting = {std::move(value), SettingOrigin::kEnvironment, "the variable " + variable};
    }
    return {};
  }

  static Result<Json> environment_value(const std::string& key, const Json& current, const std::string& text,
                                        const std::string& variable) {
    if (current.is_null() || current.is_structured())
      return fail(ErrorKind::kInvalidArgument, "{} cannot be set by the variable {}; give {}=... on the command line", key,
                  variable, key);
    const auto known = known_settings().find(key);
    if (known == known_settings().end()) return Json(text);
    return with_context(coerce_setting(key, known->second, text, text), "reading the variable " + variable);
  }

  Storage& storage_;
  const SettingsRequest& request_;
  Settings result_;
  std::optional<std::string> base_path_;
  Layer model_, overrides_;
};

Result<Settings> Settings::load(Storage& storage, const SettingsRequest& request) {
  return SettingsLoader(storage, request).load();
}

const Setting* Settings::find(std::string_view key) const {
  const auto found = settings_.find(key);
  return found == settings_.end() ? nullptr : &found->second;
}

bool Settings::given(std::string_view key) const {
  const Setting* setting = find(key);
  return setting &&
         (setting->origin == SettingOrigin::kCommandLine || setting->origin == SettingOrigin::kEnvironment);
}

namespace {

std::unexpected<Error> wrong_type(std::string_view key, const Setting* setting, std::string_view expected) {
  if (!setting) return fail(ErrorKind::kInvalidArgument, "{} is not set, expected {}", key, expected);
  return fail(ErrorKind::kInvalidArgument, "{} is {} in {}, expected {}", key, shown_setting(key, setting->value),
              printable(setting->source), expected);
}

}  // namespace

Result<bool> Settings::boolean(std::string_view key) const {
  const Setting* setting = find(key);
  if (!setting || !setting->value.is_boolean()) return wrong_type(key, setting, "true or false");
  return setting->value.get<bool>();
}

Result<int64_t> Settings::integer(std::string_view key) const {
  const Setting* setting = find(key);
  if (!setting || !setting->value.is_number_integer()) return wrong_type(key, setting, "an integer");
  return setting->value.get<int64_t>();
}

Result<double> Settings::number(std::string_view key) const {
  const Setting* setting = find(key);
  if (!setting || !setting->value.is_number()) return wrong_type(key, setting, "a number");
  return setting->value.get<double>();
}

Result<std::string> Settings::text(std::string_view key) const {
  const Setting* setting = find(key);
  if (!setting || !setting->value.is_string()) return wrong_type(key, setting, "text");
  return setting->value.get<std::string>();
}

Result<std::optional<std::string>> Settings::optional_text(std::string_view key) const {
  const Setting* setting = find(key);
  if (!setting || setting->value.is_null() || setting->value == "") return std::nullopt;
  if (!setting->value.is_string()) return wrong_type(key, setting, "text");
  return setting->value.get<std::string>();
}

bool is_known_setting(std::string_view key) { return known_settings().contains(key); }

std::vector<std::string> nearest_settings(std::string_view key, size_t count) {
  std::vector<std::string_view> names;
  for (const auto& [name, known] : known_settings()) names.push_back(name);
  return nearest_names(key, names, count);
}

bool is_secret_setting(std::string_view key) { return key == "hf_access_token"; }

Result<Json> parse_setting_value(std::string_view text) { return parse_yaml_value(text, "a setting's value"); }

Result<bool> parse_boolean(std::string_view text, std::string_view what) {
  std::string lower;
  for (char c : text) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (std::string_view word : {"y", "yes", "t", "true", "on", "1"})
    if (lower == word) return true;
  for (std::string_view word : {"n", "no", "f", "false", "off", "0"})
    if (lower == word) return false;
  return fail(ErrorKind::kInvalidArgument, "{} is '{}', expected true or false", what, printable(text));
}

}  // namespace maxport::maxtext
