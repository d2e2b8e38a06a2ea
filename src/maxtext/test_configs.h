// Configurations for the tests of derived settings.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "maxtext/catalog.h"
#include "maxtext/run_configuration.h"

namespace maxport::maxtext {

inline huggingface::ConfigRoles config_of(Json config) {
  auto out = huggingface::ConfigRoles::create(std::move(config), "config.json");
  EXPECT_TRUE(out) << out.error().message();
  return *out;
}

inline const CatalogEntry& catalog_model(std::string_view name) {
  auto out = find_model(name);
  EXPECT_TRUE(out) << out.error().message();
  return **out;
}

inline Json read_json_file(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

struct Derived {
  OrderedJson settings;
  std::vector<std::string> notes;
};

inline Derived derive(const RunConfigurationRequest& request) {
  Derived out;
  auto settings = derive_settings(request, out.notes);
  EXPECT_TRUE(settings) << settings.error().message();
  if (settings) out.settings = *settings;
  return out;
}

/// Derives the settings of a catalog entry after changing its configuration.
inline Derived derive_changed(std::string_view name, const Json& changes, bool use_multimodal = false) {
  const CatalogEntry& entry = catalog_model(name);
  Json config = entry.hf_config;
  config.merge_patch(changes);
  const auto roles = config_of(std::move(config));
  return derive({.family = entry.family, .config = roles, .use_multimodal = use_multimodal});
}

}  // namespace maxport::maxtext
