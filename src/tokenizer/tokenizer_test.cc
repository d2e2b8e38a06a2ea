// The reference judges ids and texts in tests/test_tokenizer.py; here stand the rules one by one, and what is refused.
#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace maxport::tokenizer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// Characters a to d and a space, some of their pairs, and an added token.
Json example() {
  return Json::parse(R"({
    "added_tokens": [{"id": 20, "content": "<s>", "special": true, "normalized": false}],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, " ": 4, "ab": 5, "bc": 6, "abc": 7, "cd": 8,
              "?": 9, "<0xC3>": 10, "<0xA9>": 11},
              "merges": [["b", "c"], "a b", ["a", "bc"], ["c", "d"]]},
    "decoder": {"type": "Fuse"}})");
}

Json with(const Json& change) {
  Json all = example();
  all.merge_patch(change);
  return all;
}

Result<Tokenizer> made(const Json& json) { return Tokenizer::parse(json.dump(), "t.json"); }

std::vector<int32_t> ids(const Json& json, std::string_view text, bool special = true) {
  return made(json).value().encode(text, special).value();
}

TEST(Tokenizer, MergesByRankAndFromTheLeft) {
  EXPECT_THAT(ids(example(), "abc"), ElementsAre(7));
  EXPECT_THAT(ids(example(), "abab"), ElementsAre(5, 5));
  EXPECT_THAT(ids(example(), "abcd"), ElementsAre(7, 3));
  EXPECT_THAT(ids(example(), ""), ElementsAre());
}

TEST(Tokenizer, TakesAWholeWordWhereMergesAreIgnored) {
  const Json change = {{"model", {{"ignore_merges", true}, {"vocab", {{"dcba", 12}}}}}};
  EXPECT_THAT(ids(with(change), "dcba"), ElementsAre(12));
  EXPECT_THAT(ids(with(change), "dcb"), ElementsAre(3, 2, 1));
}

TEST(Tokenizer, FallsBackToBytesThenToTheUnknownTokenThenToNothing) {
  EXPECT_THAT(ids(example(), "a\u00e9b"), ElementsAre(5));
  EXPECT_THAT(ids(with({{"model", {{"unk_token", "?"}}}}), "\u00e9\u00e9b"), ElementsAre(9, 9, 1));
  EXPECT_THAT(ids(with({{"model", {{"unk_token", "?"}, {"fuse_unk", true}}}}), "\u00e9\u00e9b"), ElementsAre(9, 1));
  EXPECT_THAT(ids(with({{"model", {{"byte_fallback", true}, {"unk_token", "?"}}}}), "\u00e9\u00e8"),
              ElementsAre(10, 11, 9));
}

TEST(Tokenizer, FindsAddedTokensBeforeAnythingElse) {
  EXPECT_THAT(ids(example(), "a<s>b<s"), ElementsAre(0, 20, 1));
  Json json = example();
  json["added_tokens"].push_back({{"id", 21}, {"content", "<s>a"}, {"normalized", false}});
  json["added_tokens"].push_back({{"id", 22}, {"content", "d"}, {"normalized", false}, {"single_word", true}});
  json["added_tokens"][2]["id"] = 3;
  json["added_tokens"].push_back(
      {{"id", 23}, {"content", "_"}, {"normalized", false}, {"lstrip", true}, {"rstrip", true}});
  EXPECT_THAT(ids(json, "<s>ab"), ElementsAre(21, 1));
  EXPECT_THAT(ids(json, "cd d"), ElementsAre(8, 4, 3));
  EXPECT_THAT(ids(json, "a _ b"), ElementsAre(0, 23, 1));
}

TEST(Tokenizer, PutsTheTokensOfATemplateAroundTheText) {
  const Json change = Json::parse(R"({"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"},
    {"type": "TemplateProcessing",
     "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "end", "type_id": 0}}],
     "special_tokens": {"<s>": {"id": "<s>", "ids": [20], "tokens": ["<s>"]},
                        "end": {"id": "end", "ids": [3, 2], "tokens": ["d", "c"]}}}]}})");
  EXPECT_THAT(ids(with(change), "a"), ElementsAre(20, 0, 3, 2));
  EXPECT_THAT(ids(with(change), "a", false), ElementsAre(0));
}

TEST(Tokenizer, DecodesWithAndWithoutSpecialTokens) {
  const auto tokenizer = made(example());
  const std::vector<int32_t> all = {20, 7, 4, 3};
  EXPECT_EQ(*tokenizer->decode(all), "abc d");
  EXPECT_EQ(*tokenizer->decode(all, false), "<s>abc d");
  EXPECT_TRUE(tokenizer->has_token(20));
  EXPECT_FALSE(tokenizer->has_token(21));
  EXPECT_THAT(tokenizer->decode(std::vector<int32_t>{-1}).error().message(), HasSubstr("no token with the id -1"));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(made(example())->encode("a\xff").error().kind(), ErrorKind::kInvalidArgument);
}

struct Bad {
  const char* change;
  ErrorKind kind;
  const char* begins;
};

TEST(Tokenizer, NamesThePlaceOfWhatItRefuses) {
  const auto corrupt = ErrorKind::kCorruptData, unsupported = ErrorKind::kUnsupported;
  const Bad cases[] = {
      {R"({"model": {"vocab": {"x": 0}}})", corrupt, "t.json: model: vocab: \"a\" and \"x\" both have the id 0"},
      {R"({"model": {"vocab": {"x": -1}}})", corrupt, "t.json: model: vocab: the id of \"x\""},
      {R"({"model": {"vocab": {"x": 1.5}}})", corrupt, "t.json: model: vocab: the id of \"x\""},
      {R"({"model": {"vocab": []}})", corrupt, "t.json: model: vocab: found an array"},
      {R"({"model": {"merges": ["a d"]}})", corrupt, "t.json: model: merges: entry 0 needs \"ad\""},
      {R"({"model": {"merges": ["a  b"]}})", corrupt, "t.json: model: merges: entry 0 is \"a  b\""},
      {R"({"model": {"merges": [["a", "b", "c"]]}})", corrupt, "t.json: model: merges: entry 0 is neither"},
      {R"({"model": {"merges": 1}})", corrupt, "t.json: model: merges: found an integer"},
      {R"({"model": {"unk_token": "x"}})", corrupt, "t.json: model: unk_token: \"x\" is not"},
      {R"({"model": {"dropout": 0.1}})", unsupported, "t.json: model: dropout"},
      {R"({"model": {"end_of_word_suffix": "</w>"}})", unsupported, "t.json: model: end_of_word_suffix"},
      {R"({"model": {"type": "WordPiece"}})", unsupported, "t.json: model: the component \"WordPiece\""},
      {R"({"added_tokens": [{"id": 1, "content": "x"}]})", corrupt, "t.json: added_tokens[0]: \"x\" has the id 1"},
      {R"({"added_tokens": [{"id": 9, "content": "a"}]})", corrupt, "t.json: added_tokens[0]: \"a\" has the id 9"},
      {R"({"added_tokens": [{"id": 30, "content": "x"}, {"id": 30, "content": "y"}]})", corrupt,
       "t.json: added_tokens[1]: the id 30 is added twice"},
      {R"({"added_tokens": [{"id": 30, "content": "x"}, {"id": 31, "content": "x"}]})", corrupt,
       "t.json: added_tokens[1]: \"x\" is added twice"},
      {R"({"normalizer": {"type": "Lowercase"}})", unsupported, "t.json: normalizer: the component \"Lowercase\""},
      {R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}]}})", unsupported,
       "t.json: pre_tokenizer: pretokenizers[0]: the component \"Whitespace\""},
      {R"({"decoder": {"type": "CTC"}})", unsupported, "t.json: decoder: the component \"CTC\""},
      {R"({"decoder": {"type": "Strip", "content": "ab", "start": 1, "stop": 0}})", corrupt,
       "t.json: decoder: content: \"ab\" is not one character"},
      {R"({"post_processor": {"type": "TemplateProcessing", "single": [], "special_tokens": {}}})", unsupported,
       "t.json: post_processor: single"},
  };
  for (const Bad& bad : cases) {
    const auto result = made(with(Json::parse(bad.change)));
    ASSERT_FALSE(result) << bad.change;
    EXPECT_EQ(result.error().kind(), bad.kind) << bad.change;
    EXPECT_THAT(result.error().message(), StartsWith(bad.begins)) << bad.change;
  }
}

}  // namespace
}  // namespace maxport::tokenizer
