// The table of MaxText's settings: types, defaults and what values of each type may look like.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace maxport::maxtext {

enum class SettingType { kBoolean, kInteger, kFloat, kText, kList, kObject, kAny };

struct KnownSetting {
  SettingType type = SettingType::kAny;
  bool nullable = false;
  std::vector<Json> choices;      ///< empty: any value of the type
  std::optional<Json> fallback;   ///< MaxText's default; none for structures that a conversion does not need
};

/// All settings by name; nested ones as "lora.lora_rank" beside an entry "lora" of type object.
const std::map<std::string, KnownSetting, std::less<>>& known_settings();

/// Brings a value as read from YAML to the setting's type the way MaxText's validation does, a little more leniently:
/// `raw` is the text it was read from, where there is one, and becomes the value of a text setting that YAML took for
/// something else. Errors name key and value.
Result<Json> coerce_setting(std::string_view key, const KnownSetting& known, Json value,
                            std::optional<std::string_view> raw);

/// How a value may be shown in messages: JSON, or a placeholder for secrets.
std::string shown_setting(std::string_view key, const Json& value);

}  // namespace maxport::maxtext
