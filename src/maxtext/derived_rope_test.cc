#include <gmock/gmock.h>

#include "maxtext/test_configs.h"

namespace maxport::maxtext {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Derived with_rope(std::string_view model, Json rope) {
  return derive_changed(model, {{"rope_parameters", std::move(rope)}});
}

TEST(DerivedRope, ScalesLlamaOnlyWithTheNumbersThatMaxTextHasBuiltIn) {
  EXPECT_EQ(derive_changed("llama3.1-8b", Json::object()).settings.at("rope_use_scale"), true);
  EXPECT_THAT(derive_changed("llama3.1-8b", Json::object()).notes, IsEmpty());
  EXPECT_THAT(with_rope("llama3.1-8b", {{"factor", 32.0}}).notes, Contains(HasSubstr("factor 32; MaxText's has 8 built in")));
  const Derived plain = with_rope("llama3.1-8b", {{"rope_type", "default"}});
  EXPECT_EQ(plain.settings.at("rope_use_scale"), false);
  EXPECT_THAT(with_rope("llama3.1-8b", {{"rope_type", "dynamic"}}).notes, Contains(HasSubstr("type dynamic")));
}

TEST(DerivedRope, TellsYarnOverHalvesInFull) {
  const Derived derived = with_rope("qwen3-8b", {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}});
  EXPECT_EQ(derived.settings.at("rope_type"), "yarn");
  EXPECT_EQ(derived.settings.at("rope_factor"), 4.0);
  EXPECT_EQ(derived.settings.at("original_max_position_embeddings"), 32768);
  EXPECT_EQ(derived.settings.at("rope_interleave"), false);
  EXPECT_EQ(derived.settings.at("rope_attention_scaling"), true);
  EXPECT_THAT(derived.notes, IsEmpty());
  EXPECT_THAT(with_rope("qwen3-8b", {{"rope_type", "yarn"}, {"factor", 4.0}, {"attention_factor", 2.0}}).notes,
              Contains(HasSubstr("yarn scale is 2")));
}

TEST(DerivedRope, TellsLinearScaling) {
  EXPECT_EQ(with_rope("qwen3-8b", {{"rope_type", "linear"}, {"factor", 2.0}}).settings.at("rope_linear_scaling_factor"), 2.0);
}

TEST(DerivedRope, KeepsDeepSeekInterleavedEvenWithoutScaling) {
  const Derived derived = derive_changed("deepseek2-16b", {{"rope_parameters", nullptr}, {"rope_theta", 10000}});
  EXPECT_EQ(derived.settings.at("rope_type"), "yarn") << "MaxText's only interleaved form";
  EXPECT_EQ(derived.settings.at("rope_factor"), 1.0);
  EXPECT_EQ(derived.settings.at("rope_interleave"), true);
  EXPECT_THAT(with_rope("deepseek3-671b", {{"mscale", 0.5}}).notes, Contains(HasSubstr("mscale_all_dim 1")));
}

TEST(DerivedRope, TakesGlobalAndLocalBasesApart) {
  const Derived gemma3 = derive_changed("gemma3-4b", Json::object());
  EXPECT_EQ(gemma3.settings.at("rope_max_timescale"), 1000000);
  EXPECT_EQ(gemma3.settings.at("local_rope_max_timescale"), 10000);
  EXPECT_EQ(gemma3.settings.at("rope_linear_scaling_factor"), 8.0);
  const Derived older = derive_changed("gemma3-4b", {{"text_config", {{"rope_parameters", nullptr}, {"rope_theta", 1000000},
                                                                      {"rope_local_base_freq", 10000},
                                                                      {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}}}});
  EXPECT_EQ(older.settings, gemma3.settings) << "the spelling before release 5";
  EXPECT_EQ(derive_changed("gemma4-31b", Json::object()).settings.at("global_rope_proportion"), 0.25);
}

TEST(DerivedRope, WarnsWhereOlmo3sLayersDiffer) {
  EXPECT_THAT(derive_changed("olmo3-7b", Json::object()).notes, Contains(HasSubstr("uses yarn in all layers")));
  EXPECT_THAT(derive_changed("olmo3-7b-pt", Json::object()).notes, IsEmpty());
}

}  // namespace
}  // namespace maxport::maxtext
