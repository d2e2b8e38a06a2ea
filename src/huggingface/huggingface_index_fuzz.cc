// Feeds raw bytes to the parsers of index and config. What an index accepts must stay in the model's folder.
#include "huggingface/config_fields.h"
#include "huggingface/config_roles.h"
#include "huggingface/index.h"

namespace {

using namespace maxport;
using namespace maxport::huggingface;

void try_index(std::string_view text) {
  const auto index = parse_index(text, "model.safetensors.index.json", "input");
  if (!index) return;
  MAXPORT_CHECK(!index->weight_map.empty() && !index->files.empty());
  for (const auto& [tensor, file] : index->weight_map) {
    MAXPORT_CHECK(is_plain_relative_path(file) && file.ends_with(".safetensors"));
    MAXPORT_CHECK(file.find("..") == std::string::npos || file.find("/../") == std::string::npos);
  }
}

void try_config(std::string_view text) {
  auto json = parse_json(text, "input");
  if (!json) return;
  const auto roles = ConfigRoles::create(std::move(*json), "input");
  if (!roles) return;
  const auto layers = roles->optional_integer("num_hidden_layers");
  MAXPORT_CHECK(layers && (!*layers || (**layers >= 1 && **layers <= kMaxLayers)));
  for (const char* layer_type : {"", "full_attention", "sliding_attention"})
    if (const auto rope = roles->rope(layer_type)) MAXPORT_CHECK(rope->theta > 0);
  (void)roles->tied_head(true);
  (void)roles->quantization();
  (void)roles->notes();
  (void)roles->section("vision_config");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_index(text);
  try_config(text);
  return 0;
}
