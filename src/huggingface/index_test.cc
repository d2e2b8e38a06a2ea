#include "huggingface/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace maxport::huggingface {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kName = "model.safetensors.index.json";

Result<Index> parse(std::string_view text) { return parse_index(text, kName, "/m/model.safetensors.index.json"); }

TEST(ParseIndex, ListsTensorsAndFiles) {
  auto index = parse(R"({"metadata":{"total_size":12,"x":[1]},"weight_map":{"b":"s-2.safetensors","a":"s-1.safetensors",
                         "c":"s-2.safetensors","d":"part/s-3.safetensors"}})");
  ASSERT_TRUE(index) << index.error().message();
  EXPECT_THAT(index->files, testing::ElementsAre("part/s-3.safetensors", "s-1.safetensors", "s-2.safetensors"));
  EXPECT_EQ(index->weight_map.at("c"), "s-2.safetensors");
  EXPECT_EQ(index->total_size, 12u);
  EXPECT_TRUE(index->warnings.empty());
}

struct Refused {
  std::string_view label;
  std::string text;
  std::string_view message;
  ErrorKind kind = ErrorKind::kCorruptData;
};

class RefusesIndex : public testing::TestWithParam<Refused> {};

TEST_P(RefusesIndex, AndSaysWhatIsWrong) {
  auto index = parse(GetParam().text);
  ASSERT_FALSE(index);
  EXPECT_THAT(index.error().message(), AllOf(HasSubstr(kName), HasSubstr(GetParam().message)));
  EXPECT_EQ(index.error().kind(), GetParam().kind);
}

std::string mapped(std::string_view value) { return fmt::format(R"({{"weight_map":{{"a.weight":{}}}}})", value); }

INSTANTIATE_TEST_SUITE_P(
    Damaged, RefusesIndex,
    testing::Values(
        Refused{"list", "[]", "is an array, expected an object"}, Refused{"number", "5", "expected an object"},
        Refused{"empty", "", "not valid JSON"}, Refused{"cut", R"({"weight_map":{)", "not valid JSON"},
        Refused{"nul_bytes", std::string(100, '\0'), "NUL byte"}, Refused{"no_map", "{}", "weight_map is missing"},
        Refused{"map_list", R"({"weight_map":[]})", "weight_map is an array"},
        Refused{"map_empty", R"({"weight_map":{}})", "weight_map lists no tensor"},
        Refused{"value_number", mapped("7"), "\"a.weight\" is an integer, expected the name of a file"},
        Refused{"value_null", mapped("null"), "\"a.weight\" is null"},
        Refused{"value_list", mapped(R"(["m.safetensors"])"), "\"a.weight\" is an array"},
        Refused{"absolute", mapped(R"("/etc/passwd")"), "lies in \"/etc/passwd\", which is not the name of a file"},
        Refused{"way_out", mapped(R"("../other/m.safetensors")"), "lies in \"../other/m.safetensors\""},
        Refused{"hidden_way_out", mapped(R"("a/../../m.safetensors")"), "lies in \"a/../../m.safetensors\""},
        Refused{"dot", mapped(R"("./m.safetensors")"), "lies in \"./m.safetensors\""},
        Refused{"backslash", mapped(R"("a\\b.safetensors")"), "which is not the name of a file"},
        Refused{"url", mapped(R"("https://example.org/m.safetensors")"), "which is not the name of a file"},
        Refused{"drive", mapped(R"("c:m.safetensors")"), "which is not the name of a file"},
        Refused{"no_name", mapped(R"("")"), "which is not the name of a file"},
        Refused{"folder", mapped(R"("a/")"), "which is not the name of a file"},
        Refused{"control", mapped(R"("a\u0007.safetensors")"), "lies in \"a\\x07.safetensors\""},
        Refused{"nul", mapped(R"("a\u0000.safetensors")"), "which is not the name of a file"},
        Refused{"index_itself", mapped(R"("model.safetensors.index.json")"), "\"a.weight\" lies in the index itself"},
        Refused{"pickle", mapped(R"("pytorch_model.bin")"), "is not a safetensors file", ErrorKind::kUnsupported},
        Refused{"name_twice", R"({"weight_map":{"a":"m.safetensors","a":"n.safetensors"}})", "\"a\" occurs twice"},
        Refused{"map_twice", R"({"weight_map":{"a":"m.safetensors"},"weight_map":{"b":"n.safetensors"}})",
                "\"weight_map\" occurs twice"},
        Refused{"case_only", R"({"weight_map":{"a":"M.safetensors","b":"m.safetensors"}})",
                "names \"M.safetensors\" and \"m.safetensors\", which differ only by case"}),
    [](const auto& row) { return std::string(row.param.label); });

TEST(ParseIndex, OnlyWarnsAboutMetadataThatDecidesNothing) {
  for (const char* metadata : {R"({"total_size":-1})", R"({"total_size":"many"})", R"({"total_size":1.5e10})",
                               R"({"total_size":null})", "[]", "7"}) {
    auto index = parse(fmt::format(R"({{"metadata":{},"weight_map":{{"a":"m.safetensors"}}}})", metadata));
    ASSERT_TRUE(index) << metadata << index.error().message();
    EXPECT_EQ(index->total_size, std::nullopt);
    EXPECT_EQ(index->warnings.size(), 1u) << metadata;
  }
}

TEST(ParseIndex, StopsAtItsSizeLimitBeforeReading) {
  auto index = parse(std::string(kMaxIndexBytes + 1, ' '));
  ASSERT_FALSE(index);
  EXPECT_EQ(index.error().kind(), ErrorKind::kResourceLimit);
}

}  // namespace
}  // namespace maxport::huggingface
