#include "base/json.h"

#include <gtest/gtest.h>

namespace maxport {
namespace {

TEST(ParseJson, BuildsNestedDocuments) {
  auto json = parse_json(R"( {"a":[1,{"b":null},-2.5],"c":"é"} )", "x");
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(json->dump(), R"({"a":[1,{"b":null},-2.5],"c":"é"})");
}

TEST(ParseJson, RefusesWhatTwoReadersCouldReadTwoWays) {
  for (const char* text : {R"({"a":1,"a":1})", R"({"a":{"b":1,"b":2}})", "\xef\xbb\xbf{}", "{\"a\":\"\xff\"}", "{} x",
                           "{'a':1}", "[NaN]", "[1e400]", "[1,]", "// c\n{}", "", "{\"\\ud800\":1}"})
    EXPECT_FALSE(parse_json(text, "x")) << text;
}

TEST(AppendJsonString, WritesWhatDumpWrites) {
  std::string all;
  for (char c = 1; c < 0x7f; ++c) all += c;
  for (const std::string& text : {std::string(), std::string("decoder.layers_0"), std::string("é\x7f"), std::string(1, '\0'),
                                  std::string("a\"b"), std::string("a\\b"), std::string("a\nb"), all}) {
    std::string out = "x";
    append_json_string(out, text);
    EXPECT_EQ(out, "x" + Json(text).dump());
  }
}

TEST(ParseJson, RefusesANulByteInsteadOfStoppingAtIt) {
  using namespace std::string_view_literals;
  for (std::string_view text : {"{}\0"sv, "{}\0{\"a\":1}"sv, "\0"sv, "{\"a\0b\":1}"sv})
    EXPECT_FALSE(parse_json(text, "x")) << text;
}

TEST(ParseJson, NamesTheRepeatedMember) {
  EXPECT_EQ(parse_json(R"({"a":1,"a":1})", "config.json").error().message(),
            "config.json: not valid JSON: member \"a\" occurs twice");
}

TEST(ParseJson, CapsDepthAndSizeWithoutRecursion) {
  EXPECT_FALSE(parse_json(std::string(1000000, '['), "x"));
  EXPECT_EQ(parse_json("[]   ", "x", {.max_bytes = 4}).error().kind(), ErrorKind::kResourceLimit);
}

}  // namespace
}  // namespace maxport
