#include "maxtext/known_settings.h"

#include <gmock/gmock.h>

namespace maxport::maxtext {
namespace {

TEST(KnownSettings, HaveDefaultsOfTheirOwnTypes) {
  EXPECT_GT(known_settings().size(), 850u);
  for (const auto& [key, known] : known_settings()) {
    if (!known.fallback) continue;
    auto coerced = coerce_setting(key, known, *known.fallback, std::nullopt);
    ASSERT_TRUE(coerced) << coerced.error().message();
    EXPECT_EQ(*coerced, *known.fallback) << key;
  }
}

TEST(KnownSettings, HaveDefaultsForEverythingAConversionReads) {
  for (const char* key : {"scan_layers", "param_scan_axis", "use_multimodal", "use_audio", "weight_dtype", "mtp_num_layers",
                          "checkpoint_storage_use_ocdbt", "checkpoint_storage_use_zarr3", "base_output_directory",
                          "load_parameters_path", "hf_lora_adapter_path", "run_name", "override_model_config"})
    EXPECT_TRUE(known_settings().at(key).fallback.has_value()) << key;
}

TEST(KnownSettings, HideSecretsWhenShown) {
  EXPECT_EQ(shown_setting("hf_access_token", "hf_abc"), "(a secret)");
  EXPECT_EQ(shown_setting("hf_access_token", nullptr), "null");
  EXPECT_EQ(shown_setting("run_name", "a\nb"), "\"a\\nb\"");
}

}  // namespace
}  // namespace maxport::maxtext
