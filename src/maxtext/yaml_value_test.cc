#include "maxtext/yaml_value.h"

#include <gmock/gmock.h>

#include <cmath>

namespace maxport::maxtext {
namespace {

using testing::HasSubstr;

Json value(std::string_view text) {
  auto out = parse_yaml_value(text, "value");
  EXPECT_TRUE(out) << out.error().message();
  return out ? *out : Json("(error)");
}

TEST(YamlValue, ReadsScalarsAsMaxTextDoes) {
  const std::pair<std::string_view, Json> cases[] = {
      {"true", true}, {"True", true}, {"yes", true}, {"ON", true}, {"false", false}, {"No", false}, {"off", false},
      {"", nullptr}, {"~", nullptr}, {"null", nullptr}, {"None", "None"}, {"y", "y"}, {"tRUE", "tRUE"},
      {"12", 12}, {"-7", -7}, {"+3", 3}, {"10_000", 10000}, {"0x1F", 31}, {"010", 8}, {"0b11", 3}, {"08", "08"},
      {"1.5", 1.5}, {"1.e-06", 1e-6}, {"1e-5", 1e-5}, {"1E5", 1e5}, {".5", 0.5}, {"1_000.5", 1000.5}, {"-.inf", -INFINITY},
      {"1.2.3", "1.2.3"}, {".", "."}, {"e5", "e5"}, {"_1", "_1"}, {"1e", "1e"}, {"2024-01-31", "2024-01-31"},
      {"gs://bucket/a=b", "gs://bucket/a=b"}, {"\"12\"", "12"}, {"'true'", "true"},
      {"[1, two, 3.0]", Json::array({1, "two", 3.0})}, {"{a: 1}", Json{{"a", 1}}},
      {"99999999999999999999", "99999999999999999999"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(value(text), expected) << text;
  EXPECT_TRUE(value("1e5").is_number_float()) << "a float stays one even if whole";
  EXPECT_TRUE(std::isnan(value(".nan").get<double>()));
}

TEST(YamlValue, RefusesWhatIsNoYamlAndSaysWhere) {
  for (std::string_view text : {"[1, 2", "{a: 1, a: 2}", "a: b: c", "\"open", "\xff"}) {
    auto out = parse_yaml_value(text, "scan_layers");
    ASSERT_FALSE(out) << text;
    EXPECT_THAT(out.error().message(), HasSubstr("scan_layers")) << text;
  }
}

TEST(YamlValue, StopsAtHostileDepthAndAtAliasesThatMultiply) {
  EXPECT_EQ(parse_yaml_value(std::string(100000, '['), "x").error().kind(), ErrorKind::kResourceLimit);
  EXPECT_EQ(parse_yaml_value(std::string(100000, '-'), "x").has_value(), false);
  std::string steps;
  for (int i = 0; i < 1000; ++i) steps += "- ";
  EXPECT_EQ(parse_yaml_value(steps, "x").error().kind(), ErrorKind::kResourceLimit);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += fmt::format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j) bomb += fmt::format("{}*a{}", j ? ", " : "", i - 1);
    bomb += "]\n";
  }
  EXPECT_EQ(parse_yaml_mapping(bomb, "x").error().kind(), ErrorKind::kResourceLimit);
}

TEST(YamlValue, KeepsTheOrderOfAFileAndRefusesAKeyGivenTwice) {
  auto members = parse_yaml_mapping("b: 1\n# comment\na: [x]\n", "file");
  ASSERT_TRUE(members);
  ASSERT_EQ(members->size(), 2u);
  EXPECT_EQ((*members)[0].first, "b");
  EXPECT_EQ((*members)[1].second, Json::array({"x"}));
  EXPECT_TRUE(parse_yaml_mapping("", "file")->empty());
  EXPECT_THAT(parse_yaml_mapping("a: 1\nb: 2\na: 3\n", "file").error().message(), HasSubstr("a is given twice"));
  EXPECT_THAT(parse_yaml_mapping("- a\n", "file").error().message(), HasSubstr("expected lines"));
}

TEST(YamlValue, WritesTextThatReadsBackAsTheSameValue) {
  const Json values[] = {nullptr, true, 3, -1, 1e-6, 1e-5, 1e22, 10000.0, 0.1, "llama2", "gs://b/c", "true", "12", "1e5", "no",
                         "none", "", "a: b", "<|image|>", "tab\there", Json::array({1, 2.5, "x", "yes"}), Json::array(),
                         Json{{"a", Json::array({0.25})}}};
  for (const Json& original : values) {
    const std::string text = yaml_text(original);
    const Json back = value(text);
    EXPECT_EQ(back, original) << text;
    EXPECT_EQ(back.is_number_float(), original.is_number_float()) << text;
  }
  EXPECT_EQ(yaml_text(1e-6), "1.0e-06") << "the only spelling that every YAML 1.1 reader takes for a number";
  EXPECT_EQ(yaml_text("llama2"), "llama2");
}

}  // namespace
}  // namespace maxport::maxtext
