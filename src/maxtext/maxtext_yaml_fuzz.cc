// YAML of configurations and of key=value words: whatever parses is written as text that parses to the same value.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "maxtext/settings.h"
#include "maxtext/yaml_value.h"
#include "storage/memory_storage.h"

namespace {

using namespace maxport;
using namespace maxport::maxtext;

/// NaN differs from itself, and YAML has no way to write a long key within braces.
bool can_come_back(const Json& value) {
  constexpr size_t kLongestKey = 1000;
  if (value.is_number_float()) return !std::isnan(value.get<double>());
  if (value.is_array()) return std::ranges::all_of(value, can_come_back);
  if (!value.is_object()) return true;
  return std::ranges::all_of(value.items(), [](const auto& member) {
    return Json(member.key()).dump(-1, ' ', true).size() < kLongestKey && can_come_back(member.value());
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (auto value = parse_yaml_value(text, "input"); value && can_come_back(*value)) {
    auto again = parse_yaml_value(yaml_text(*value), "output");
    if (!again || *again != *value) std::abort();
  }
  MemoryStorage storage;
  if (storage.write_text("base.yml", text))
    (void)Settings::load(storage, {.base_file = "base.yml", .overrides = {{"run_name", text}}, .environment = {}});
  return 0;
}
