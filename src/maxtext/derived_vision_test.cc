#include <gmock/gmock.h>

#include "maxtext/test_configs.h"

namespace maxport::maxtext {
namespace {

using testing::HasSubstr;

TEST(DerivedVision, IsLeftOutForTextOnly) {
  const Derived text = derive_changed("qwen3-vl-2b", Json::object());
  EXPECT_EQ(text.settings.at("use_multimodal"), false);
  EXPECT_FALSE(text.settings.contains("vision_encoder_block"));
  EXPECT_FALSE(text.settings.contains("deepstack_visual_indexes_for_vit"));
  EXPECT_EQ(text.settings.at("use_mrope"), true) << "the decoder's rope stays what it is";
}

TEST(DerivedVision, FollowsTheVisionPart) {
  const Derived derived = derive_changed("qwen3-vl-2b", {{"vision_config", {{"depth", 7}}}}, true);
  EXPECT_EQ(derived.settings.at("num_hidden_layers_for_vit"), 7);
  EXPECT_EQ(derived.settings.at("deepstack_visual_indexes_for_vit"), OrderedJson::array({5, 11, 17}));
}

TEST(DerivedVision, MissesAVisionPartThatWasAskedFor) {
  Json config = catalog_model("gemma3-4b").hf_config;
  config.erase("vision_config");
  const auto roles = config_of(config);
  std::vector<std::string> notes;
  const auto out = derive_settings({.family = "gemma3", .config = roles, .use_multimodal = true}, notes);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(out.error().message(), HasSubstr("no vision_config"));
}

TEST(DerivedVision, AddsTheAudioPartOnlyWhenWanted) {
  const auto config = config_of(catalog_model("qwen3-omni-30b-a3b").hf_config);
  const Derived with = derive({.family = "qwen3-omni", .config = config, .use_multimodal = true, .use_audio = true});
  EXPECT_EQ(with.settings.at("d_model_for_audio"), 1280);
  const Derived without = derive({.family = "qwen3-omni", .config = config, .use_multimodal = true});
  EXPECT_EQ(without.settings.at("use_audio"), false);
  EXPECT_FALSE(without.settings.contains("d_model_for_audio"));
}

}  // namespace
}  // namespace maxport::maxtext
