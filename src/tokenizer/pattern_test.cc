#include "tokenizer/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace maxport::tokenizer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> matches(const Pattern& pattern, std::string_view text) {
  std::vector<std::string> found;
  const auto spans = pattern.find(text);
  for (const Span& span : spans.value()) {
    if (span.is_match) found.emplace_back(text.substr(span.begin, span.end - span.begin));
  }
  return found;
}

TEST(Pattern, CoversTheTextWithMatchesAndWhatLiesBetween) {
  const auto spans = Pattern::expression("b+", "test")->find("abbc");
  ASSERT_EQ(spans->size(), 3u);
  EXPECT_FALSE((*spans)[0].is_match);
  EXPECT_EQ((*spans)[1].begin, 1u);
  EXPECT_EQ((*spans)[1].end, 3u);
  EXPECT_EQ((*spans)[2].end, 4u);
  EXPECT_TRUE(Pattern::literal("x", "test")->find("")->empty());
}

TEST(Pattern, TakesALiteralLiterally) { EXPECT_THAT(matches(*Pattern::literal(".", "test"), "a.b"), ElementsAre(".")); }

TEST(Pattern, ReadsUnicodeAsOnigurumaDoes) {
  EXPECT_THAT(matches(*Pattern::expression(R"(\s)", "test"), "\u180e\u00a0\u3000x"), ElementsAre("\u00a0", "\u3000"));
  EXPECT_THAT(matches(*Pattern::expression(R"([^\s]+)", "test"), "a\u2028b"), ElementsAre("a", "b"));
  EXPECT_THAT(matches(*Pattern::expression("(?i:'s)", "test"), "'S'\u017f"), ElementsAre("'S", "'\u017f"));
  EXPECT_THAT(matches(*Pattern::expression(R"(\p{Han})", "test"), "\u6f22\u3001"), ElementsAre("\u6f22"));
  EXPECT_THAT(matches(*Pattern::expression(R"(\u0041|\x{e9}|\x42)", "test"), "ABC\u00e9"),
              ElementsAre("A", "B", "\u00e9"));
}

TEST(Pattern, RefusesWhatOnigurumaReadsDifferently) {
  for (const char* regex : {"^a", "a$", R"(\w)", R"(\ba)", R"(\h)", R"(\v)", "[a[b]]", "[a&&b]", "[]a]", "(?i)a",
                            "(*UCP)a", "a{2}+", "a{,3}", R"(\xe9)", R"(\p{)", "(?<name>a)", "a\\"})
    EXPECT_EQ(Pattern::expression(regex, "test").error().kind(), ErrorKind::kUnsupported) << regex;
}

TEST(Pattern, RefusesExpressionsThatMatchNothingOrDoNotCompile) {
  EXPECT_THAT(Pattern::expression("a*", "place").error().message(),
              HasSubstr("place: the expression can match nothing"));
  EXPECT_THAT(Pattern::expression("(a", "place").error().message(), HasSubstr("cannot be compiled"));
  EXPECT_FALSE(Pattern::literal("", "place"));
}

TEST(Pattern, ReportsExpressionsThatBacktrackForever) {
  const auto pattern = Pattern::expression("(?:a|aa)+[bd]", "place");
  EXPECT_EQ(pattern->find(std::string(60, 'a') + "c").error().kind(), ErrorKind::kResourceLimit);
}

TEST(Pattern, IsReadFromJson) {
  EXPECT_THAT(matches(*Pattern::from_json(Json{{"String", " "}}, "test"), "a b"), ElementsAre(" "));
  EXPECT_THAT(matches(*Pattern::from_json(Json{{"Regex", "[ab]"}}, "test"), "a b"), ElementsAre("a", "b"));
  for (const Json& bad : {Json("x"), Json{{"Other", "x"}}, Json{{"String", 1}}, Json{{"String", "a"}, {"Regex", "b"}}})
    EXPECT_EQ(Pattern::from_json(bad, "test").error().kind(), ErrorKind::kCorruptData);
}

}  // namespace
}  // namespace maxport::tokenizer
