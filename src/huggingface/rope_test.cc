#include "huggingface/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace maxport::huggingface {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Result<Rope> rope(std::string_view config, std::string layer_type = "", std::string model_type = "qwen3") {
  const Json section = Json::parse(config);
  return resolve_rope({section, "text_config", std::move(model_type), std::move(layer_type), "config.json"});
}

struct Read {
  std::string_view label;
  std::string_view config;
  std::string_view layer_type;
  double theta;
  std::string_view theta_source;
  std::string_view type;
  std::string_view parameters;
};

class ReadsRope : public testing::TestWithParam<Read> {};

TEST_P(ReadsRope, WhereverItStands) {
  const Read& want = GetParam();
  auto got = rope(want.config, std::string(want.layer_type));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->theta, want.theta);
  EXPECT_EQ(got->theta_source, want.theta_source);
  EXPECT_EQ(got->type, want.type);
  EXPECT_EQ(got->parameters, Json::parse(want.parameters));
}

constexpr std::string_view kByKind = R"({"rope_parameters":{"full_attention":{"rope_theta":1e6,"rope_type":"linear",
  "factor":8.0},"sliding_attention":{"rope_theta":1e4,"rope_type":"default"}}})";
constexpr std::string_view kByKindOld =
    R"({"rope_theta":1e6,"rope_local_base_freq":1e4,"rope_scaling":{"rope_type":"linear","factor":8.0}})";

INSTANTIATE_TEST_SUITE_P(
    Spellings, ReadsRope,
    testing::Values(
        Read{"top_only", R"({"rope_theta":77000.0})", "", 77000, "text_config.rope_theta", "default", "{}"},
        Read{"nested_only", R"({"rope_parameters":{"rope_theta":77000,"rope_type":"default"}})", "", 77000,
             "text_config.rope_parameters.rope_theta", "default", "{}"},
        Read{"both_equal", R"({"rope_theta":77000.0,"rope_parameters":{"rope_theta":77000,"rope_type":"default"}})", "",
             77000, "text_config.rope_parameters.rope_theta", "default", "{}"},
        Read{"scaling_null", R"({"rope_theta":1.0,"rope_scaling":null})", "", 1, "text_config.rope_theta", "default",
             "{}"},
        Read{"scaling_old_type", R"({"rope_theta":1.0,"rope_scaling":{"type":"yarn","factor":4.0}})", "", 1,
             "text_config.rope_theta", "yarn", R"({"factor":4.0})"},
        Read{"scaling_with_both_types",
             R"({"rope_theta":1.0,"rope_scaling":{"type":"mrope","rope_type":"default","mrope_section":[1,2]}})", "", 1,
             "text_config.rope_theta", "default", R"({"mrope_section":[1,2]})"},
        Read{"llama3",
             R"({"rope_parameters":{"factor":8.0,"high_freq_factor":4.0,"low_freq_factor":1.0,
                 "original_max_position_embeddings":8192,"rope_theta":500000.0,"rope_type":"llama3"}})",
             "", 500000, "text_config.rope_parameters.rope_theta", "llama3",
             R"({"factor":8.0,"high_freq_factor":4.0,"low_freq_factor":1.0,"original_max_position_embeddings":8192})"},
        Read{"scaling_beside_equal_parameters",
             R"({"rope_theta":1.0,"rope_scaling":{"type":"yarn","factor":4.0},
                 "rope_parameters":{"rope_type":"yarn","factor":4.0,"rope_theta":1.0}})",
             "", 1, "text_config.rope_parameters.rope_theta", "yarn", R"({"factor":4.0})"},
        Read{"one_for_all_kinds", R"({"rope_parameters":{"rope_theta":5.0,"rope_type":"yarn","factor":2}})",
             "sliding_attention", 5, "text_config.rope_parameters.rope_theta", "yarn", R"({"factor":2})"},
        Read{"by_kind_full", kByKind, "full_attention", 1e6, "text_config.rope_parameters.full_attention.rope_theta",
             "linear", R"({"factor":8.0})"},
        Read{"by_kind_local", kByKind, "sliding_attention", 1e4,
             "text_config.rope_parameters.sliding_attention.rope_theta", "default", "{}"},
        Read{"by_kind_unasked", kByKind, "", 1e6, "text_config.rope_parameters.full_attention.rope_theta", "linear",
             R"({"factor":8.0})"},
        Read{"old_by_kind_full", kByKindOld, "full_attention", 1e6, "text_config.rope_theta", "linear",
             R"({"factor":8.0})"},
        Read{"old_by_kind_local", kByKindOld, "sliding_attention", 1e4, "text_config.rope_local_base_freq", "default",
             "{}"},
        Read{"kind_without_theta_of_its_own",
             R"({"rope_parameters":{"rope_theta":5.0,"full_attention":{"rope_type":"yarn","factor":2}}})",
             "full_attention", 5, "text_config.rope_parameters.rope_theta", "yarn", R"({"factor":2})"}),
    [](const auto& row) { return std::string(row.param.label); });

struct Refused {
  std::string_view label;
  std::string_view config;
  ErrorKind kind;
  std::string_view first, second;
};

class RefusesRope : public testing::TestWithParam<Refused> {};

TEST_P(RefusesRope, ShowingBothPlaces) {
  auto got = rope(GetParam().config);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind(), GetParam().kind);
  EXPECT_THAT(got.error().message(), AllOf(HasSubstr(GetParam().first), HasSubstr(GetParam().second)));
}

INSTANTIATE_TEST_SUITE_P(
    Contradictions, RefusesRope,
    testing::Values(
        Refused{"two_thetas", R"({"rope_theta":77000.0,"rope_parameters":{"rope_theta":88000.0}})",
                ErrorKind::kInvalidArgument, "text_config.rope_parameters.rope_theta is 88000",
                "text_config.rope_theta is 77000"},
        Refused{"two_types",
                R"({"rope_scaling":{"type":"yarn"},"rope_parameters":{"rope_theta":1.0,"rope_type":"llama3"}})",
                ErrorKind::kInvalidArgument, "rope_parameters has type \"llama3\"", "rope_scaling has type \"yarn\""},
        Refused{"two_factors", R"({"rope_scaling":{"factor":2.0},"rope_parameters":{"rope_theta":1.0,"factor":4.0}})",
                ErrorKind::kInvalidArgument, "rope_parameters.factor is 4.0", "rope_scaling.factor is 2.0"},
        Refused{"two_partial_factors",
                R"({"partial_rotary_factor":0.5,"rope_parameters":{"rope_theta":1.0,"partial_rotary_factor":0.25}})",
                ErrorKind::kInvalidArgument, "partial_rotary_factor is 0.25", "partial_rotary_factor is 0.5"},
        Refused{"theta_as_text", R"({"rope_theta":"10000"})", ErrorKind::kCorruptData, "text_config.rope_theta",
                "is a string, expected a number"},
        Refused{"theta_0", R"({"rope_theta":0})", ErrorKind::kCorruptData, "text_config.rope_theta is 0", "positive"},
        Refused{"theta_negative", R"({"rope_theta":-1.5})", ErrorKind::kCorruptData, "rope_theta is -1.5", "positive"},
        Refused{"parameters_list", R"({"rope_parameters":[]})", ErrorKind::kCorruptData, "rope_parameters is an array",
                "expected an object"},
        Refused{"nothing", "{}", ErrorKind::kNotFound, "text_config.rope_parameters.rope_theta",
                "text_config.rope_theta"}),
    [](const auto& row) { return std::string(row.param.label); });

TEST(ResolveRope, TakesThePartialFactorFromEitherPlace) {
  EXPECT_EQ(rope(R"({"rope_theta":1.0,"partial_rotary_factor":0.5})")->partial_rotary_factor, 0.5);
  EXPECT_EQ(rope(R"({"rope_parameters":{"rope_theta":1.0,"partial_rotary_factor":0.25}})")->partial_rotary_factor,
            0.25);
  EXPECT_EQ(rope(R"({"rope_theta":1.0})")->partial_rotary_factor, std::nullopt);
}

TEST(ResolveRope, NamesTheClassWhoseDefaultItTakes) {
  const auto got = rope("{}", "", "llama");
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->theta, 10000);
  EXPECT_EQ(got->theta_source, "default of llama in transformers");
}

}  // namespace
}  // namespace maxport::huggingface
