#include <gmock/gmock.h>

#include "maxtext/test_configs.h"

namespace maxport::maxtext {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(DerivedExperts, CountsSharedExpertsInWidthsOfARoutedOne) {
  EXPECT_EQ(derive_changed("qwen3-next-80b-a3b", Json::object()).settings.at("shared_experts"), 1);
  EXPECT_EQ(derive_changed("qwen3-next-80b-a3b", {{"shared_expert_intermediate_size", 1024}}).settings.at("shared_experts"), 2);
  Json config = catalog_model("qwen3-next-80b-a3b").hf_config;
  config["shared_expert_intermediate_size"] = 700;
  const auto roles = config_of(config);
  std::vector<std::string> notes;
  EXPECT_THAT(derive_settings({.family = "qwen3-next", .config = roles}, notes).error().message(), HasSubstr("700 wide"));
}

TEST(DerivedExperts, KnowsTheScoringThatSavedFilesNoLongerState) {
  EXPECT_EQ(derive_changed("deepseek3-671b", {{"scoring_func", nullptr}}).settings.at("routed_score_func"), "sigmoid");
  EXPECT_EQ(derive_changed("deepseek2-16b", {{"scoring_func", nullptr}}).settings.at("routed_score_func"), "softmax");
  EXPECT_EQ(derive_changed("deepseek4-284b", {{"scoring_func", nullptr}}).settings.at("routed_score_func"), "sqrtsoftplus");
}

TEST(DerivedExperts, RoutesToGroupsWhereTheModelDoes) {
  const Derived grouped = derive_changed("deepseek3-671b", Json::object());
  EXPECT_EQ(grouped.settings.at("n_routing_groups"), 8);
  EXPECT_EQ(grouped.settings.at("topk_routing_group"), 4);
  EXPECT_FALSE(derive_changed("deepseek3-671b", {{"n_group", 1}}).settings.contains("n_routing_groups"));
  EXPECT_THAT(derive_changed("deepseek2-16b", {{"n_group", 8}}).notes, Contains(HasSubstr("groups of experts")));
}

TEST(DerivedExperts, LeavesDenseModelsWithoutExperts) {
  EXPECT_FALSE(derive_changed("qwen3-8b", Json::object()).settings.contains("num_experts"));
  EXPECT_FALSE(derive_changed("gemma4-31b", Json::object()).settings.contains("num_experts"));
  EXPECT_EQ(derive_changed("gemma4-26b", Json::object()).settings.at("shared_experts"), 1);
}

}  // namespace
}  // namespace maxport::maxtext
