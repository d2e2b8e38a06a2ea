// YAML of configurations and of key=value words: whatever parses is written as text that parses to the same value.
#include <cstdlib>

#include "maxtext/settings.h"
#include "maxtext/yaml_value.h"
#include "storage/memory_storage.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace maxport;
  using namespace maxport::maxtext;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (auto value = parse_yaml_value(text, "input")) {
    auto again = parse_yaml_value(yaml_text(*value), "output");
    // NaN is the one value that differs from itself.
    const bool has_nan = value->dump(-1, ' ', false, Json::error_handler_t::replace).find("null") != std::string::npos;
    if (!again || (*again != *value && !has_nan)) std::abort();
  }
  MemoryStorage storage;
  if (storage.write_text("base.yml", text)) (void)Settings::load(storage, {.base_file = "base.yml", .overrides = {{"run_name", text}}, .environment = {}});
  return 0;
}
