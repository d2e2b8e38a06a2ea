#include "safetensors/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace maxport::safetensors {
namespace {

using testing::HasSubstr;
using namespace std::string_view_literals;

Result<Header> parse(std::string_view json, uint64_t data_bytes, MetadataPolicy policy = MetadataPolicy::kStrict) {
  return parse_header(as_bytes(json), 8 + json.size() + data_bytes, "m.safetensors", policy);
}

struct Accepted {
  std::string_view label;
  std::string json;
  uint64_t data_bytes;
};

// Braces around one entry with the given fields after the dtype.
std::string entry(std::string_view rest, std::string_view name = "a", std::string_view dtype = "F32") {
  return fmt::format(R"({{"{}":{{"dtype":"{}",{}}}}})", name, dtype, rest);
}

const auto label_of = [](const auto& row) { return std::string(row.param.label); };

class AcceptsHeader : public testing::TestWithParam<Accepted> {};

TEST_P(AcceptsHeader, AsTheReferenceLibraryDoes) {
  auto header = parse(GetParam().json, GetParam().data_bytes);
  EXPECT_TRUE(header) << header.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Container, AcceptsHeader,
    testing::Values(
        Accepted{"no_tensor", "{}", 0}, Accepted{"one", entry(R"("shape":[2],"data_offsets":[0,8])"), 8},
        Accepted{"fields_in_any_order", R"({"a":{"data_offsets":[0,8],"shape":[2],"dtype":"F32"}})", 8},
        Accepted{"spaces_before_and_after", " \n\t" + entry(R"("shape":[2],"data_offsets":[0,8])") + "   \r\n", 8},
        Accepted{"metadata_empty", R"({"__metadata__":{}})", 0},
        Accepted{"metadata_null", R"({"__metadata__":null})", 0},
        Accepted{"metadata_text", R"({"__metadata__":{"format":"pt"}})", 0},
        Accepted{"unknown_field", entry(R"("shape":[2],"data_offsets":[0,8],"x":{"y":[1,null,2.5]})"), 8},
        Accepted{"scalar", entry(R"("shape":[],"data_offsets":[0,4])"), 4},
        Accepted{"zero_size", entry(R"("shape":[2,0],"data_offsets":[0,0])"), 0},
        Accepted{"zero_size_with_huge_extents",
                 entry(R"("shape":[0,18446744073709551615,18446744073709551615],"data_offsets":[0,0])"), 0},
        Accepted{"zero_size_between_others",
                 R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"z":{"dtype":"U8","shape":[0],)"
                 R"("data_offsets":[1,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                 2},
        Accepted{"entries_out_of_order",
                 R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},"b":{"dtype":"U8","shape":[1],)"
                 R"("data_offsets":[0,1]}})",
                 5},
        Accepted{"empty_name", entry(R"("shape":[1],"data_offsets":[0,4])", ""), 4},
        Accepted{"name_with_nul", entry(R"("shape":[1],"data_offsets":[0,4])", "a\\u0000b"), 4},
        Accepted{"name_like_a_path", entry(R"("shape":[1],"data_offsets":[0,4])", "../../etc/x"), 4},
        Accepted{"name_with_slashes", entry(R"("shape":[1],"data_offsets":[0,4])", "a/b/c/0"), 4},
        Accepted{"name_of_a_megabyte", entry(R"("shape":[1],"data_offsets":[0,4])", std::string(1 << 20, 'n')), 4},
        Accepted{"highest_rank",
                 entry(R"("shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],)"
                       R"("data_offsets":[0,4])"),
                 4},
        Accepted{"half_bytes_that_fill", entry(R"("shape":[3,2],"data_offsets":[0,3])", "a", "F4"), 3},
        Accepted{"six_bits_that_fill", entry(R"("shape":[4],"data_offsets":[0,3])", "a", "F6_E2M3"), 3}),
    label_of);

struct Refused {
  std::string_view label;
  std::string json;
  uint64_t data_bytes;
  std::string_view message;
  ErrorKind kind = ErrorKind::kCorruptData;
};

class RefusesHeader : public testing::TestWithParam<Refused> {};

TEST_P(RefusesHeader, AndSaysWhatWasFound) {
  auto header = parse(GetParam().json, GetParam().data_bytes);
  ASSERT_FALSE(header);
  EXPECT_THAT(header.error().message(), HasSubstr(GetParam().message));
  EXPECT_THAT(header.error().message(), HasSubstr("m.safetensors"));
  EXPECT_EQ(header.error().kind(), GetParam().kind);
}

INSTANTIATE_TEST_SUITE_P(
    Text, RefusesHeader,
    testing::Values(Refused{"not_utf8", "{\"\xff\":1}", 0, "not valid UTF-8"},
                    Refused{"byte_order_mark", "\xef\xbb\xbf{}", 0, "byte order mark"},
                    Refused{"array", "[]", 0, "header is an array, expected an object"},
                    Refused{"number", "5", 0, "header is the number 5"}, Refused{"null", "null", 0, "header is null"},
                    Refused{"only_spaces", "        ", 0, "not valid JSON"},
                    Refused{"trailing_nul", std::string("{}\0\0", 4), 0, "NUL byte at offset 10"},
                    Refused{"junk_behind", "{} x", 0, "not valid JSON at byte"},
                    Refused{"second_document", "{}{}", 0, "not valid JSON"},
                    Refused{"comment", "{/* c */}", 0, "not valid JSON"},
                    Refused{"single_quotes", "{'a':1}", 0, "not valid JSON"},
                    Refused{"cut_off", R"({"a":{"dtype":"F32")", 0, "not valid JSON"},
                    Refused{"not_a_number", entry(R"("shape":[NaN],"data_offsets":[0,4])"), 4, "not valid JSON"},
                    Refused{"lone_surrogate", entry(R"("shape":[1],"data_offsets":[0,4])", "\\ud800"), 4,
                            "not valid JSON"},
                    Refused{"deep_arrays", entry("\"x\":" + std::string(100000, '['), "a"), 0, "nested deeper than 128",
                            ErrorKind::kResourceLimit},
                    Refused{"deep_shape", entry("\"shape\":" + std::string(100000, '[')), 0, "shape holds an array"},
                    Refused{"deep_top", std::string(100000, '['), 0, "header is an array"}),
    label_of);

INSTANTIATE_TEST_SUITE_P(
    Names, RefusesHeader,
    testing::Values(
        Refused{"name_twice_equal",
                R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],)"
                R"("data_offsets":[0,4]}})",
                4, "tensor \"a\" is listed twice"},
        Refused{"name_twice_different",
                R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"I32","shape":[1],)"
                R"("data_offsets":[4,8]}})",
                8, "tensor \"a\" is listed twice"},
        Refused{"name_twice_by_escape",
                R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"\u0061":{"dtype":"F32","shape":[1],)"
                R"("data_offsets":[4,8]}})",
                8, "tensor \"a\" is listed twice"},
        Refused{"dtype_twice", entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), 4, "\"dtype\" occurs twice"},
        Refused{"shape_twice", entry(R"("shape":[1],"shape":[1],"data_offsets":[0,4])"), 4, "\"shape\" occurs twice"},
        Refused{"offsets_twice", entry(R"("shape":[1],"data_offsets":[0,4],"data_offsets":[0,4])"), 4,
                "\"data_offsets\" occurs twice"},
        Refused{"unknown_field_twice", entry(R"("x":1,"x":2,"shape":[1],"data_offsets":[0,4])"), 4,
                "field \"x\" occurs twice"},
        Refused{"metadata_twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "__metadata__ occurs twice"},
        Refused{"metadata_key_twice", R"({"__metadata__":{"k":"1","k":"2"}})", 0, "\"k\" occurs twice"},
        Refused{"tensor_called_metadata", entry(R"("shape":[1],"data_offsets":[0,4])", "__metadata__"), 4,
                "__metadata__: the value of \"shape\" is an array, expected a string"}),
    label_of);

INSTANTIATE_TEST_SUITE_P(
    Metadata, RefusesHeader,
    testing::Values(
        Refused{"integer", R"({"__metadata__":{"step":0}})", 0, "the value of \"step\" is the number 0"},
        Refused{"null_value", R"({"__metadata__":{"step":null}})", 0, "the value of \"step\" is null"},
        Refused{"object", R"({"__metadata__":{"step":{}}})", 0, "the value of \"step\" is an object"},
        Refused{"list", R"({"__metadata__":{"step":[]}})", 0, "the value of \"step\" is an array"},
        Refused{"boolean", R"({"__metadata__":{"step":true}})", 0, "the value of \"step\" is a boolean"},
        Refused{"metadata_list", R"({"__metadata__":[]})", 0, "__metadata__ is an array, expected an object"},
        Refused{"metadata_text", R"({"__metadata__":"x"})", 0, "__metadata__ is a string, expected an object"}),
    label_of);

INSTANTIATE_TEST_SUITE_P(
    Entries, RefusesHeader,
    testing::Values(
        Refused{"null_entry", R"({"a":null})", 0, "tensor \"a\" is null, expected an object"},
        Refused{"list_entry", R"({"a":["F32",[1],[0,4]]})", 4, "tensor \"a\" is an array, expected an object"},
        Refused{"no_shape", entry(R"("data_offsets":[0,4])"), 4, "tensor \"a\": shape is missing"},
        Refused{"null_shape", entry(R"("shape":null,"data_offsets":[0,4])"), 4, "shape is null, expected an array"},
        Refused{"no_dtype", R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "dtype is missing"},
        Refused{"no_offsets", entry(R"("shape":[1])"), 4, "data_offsets is missing"},
        Refused{"one_offset", entry(R"("shape":[1],"data_offsets":[0])"), 4, "data_offsets has 1 entries, expected 2"},
        Refused{"three_offsets", entry(R"("shape":[1],"data_offsets":[0,4,8])"), 4, "more than two entries"},
        Refused{"negative_extent", entry(R"("shape":[-1],"data_offsets":[0,4])"), 4, "shape holds the number -1"},
        Refused{"minus_zero_extent", entry(R"("shape":[-0],"data_offsets":[0,0])"), 0, "shape holds the number"},
        Refused{"float_extent", entry(R"("shape":[2.0],"data_offsets":[0,8])"), 8, "shape holds the number 2.0"},
        Refused{"exponent_extent", entry(R"("shape":[2e0],"data_offsets":[0,8])"), 8, "shape holds the number 2e0"},
        Refused{"text_extent", entry(R"("shape":["2"],"data_offsets":[0,8])"), 8, "shape holds a string"},
        Refused{"extent_beyond_64_bits", entry(R"("shape":[18446744073709551616],"data_offsets":[0,8])"), 8,
                "shape holds the number 18446744073709551616"},
        Refused{"negative_offset", entry(R"("shape":[1],"data_offsets":[-4,0])"), 4,
                "data_offsets holds the number -4"},
        Refused{"float_offset", entry(R"("shape":[1],"data_offsets":[0.0,4])"), 4, "data_offsets holds the number 0.0"},
        Refused{"reversed_offsets", entry(R"("shape":[1],"data_offsets":[4,0])"), 4, "[4, 0] are reversed"},
        Refused{"unknown_dtype", entry(R"("shape":[1],"data_offsets":[0,4])", "a", "F33"), 4,
                "unknown dtype \"F33\", known are BOOL"},
        Refused{"lower_case_dtype", entry(R"("shape":[1],"data_offsets":[0,4])", "a", "f32"), 4, "unknown dtype"},
        Refused{"dtype_number", R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", 4, "dtype is the number 32"},
        Refused{"rank_33",
                entry("\"shape\":[1" +
                      [] {
                        std::string ones;
                        for (int i = 0; i < 32; ++i) ones += ",1";
                        return ones;
                      }() +
                      "],\"data_offsets\":[0,4]"),
                4, "more than 32 dimensions", ErrorKind::kResourceLimit}),
    label_of);

INSTANTIATE_TEST_SUITE_P(
    Layout, RefusesHeader,
    testing::Values(
        Refused{"end_past_file", entry(R"("shape":[2],"data_offsets":[0,8])"), 4, "file is truncated"},
        Refused{"end_at_the_last_byte_of_64_bits",
                entry(R"("shape":[18446744073709551615],"data_offsets":[0,18446744073709551615])", "a", "U8"), 4,
                "the size of its shape overflows"},
        Refused{"size_that_wraps_past_the_file",
                entry(R"("shape":[9223372036854775807,2],"data_offsets":[0,18446744073709551614])", "a", "U8"), 4,
                "overflows"},
        Refused{"overlap",
                R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],)"
                R"("data_offsets":[2,6]}})",
                6, "tensors \"a\" and \"b\" overlap: [0, 4] and [2, 6]"},
        Refused{"same_bytes_twice",
                R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],)"
                R"("data_offsets":[0,4]}})",
                4, "tensors \"a\" and \"b\" overlap"},
        Refused{"hole_at_start", entry(R"("shape":[1],"data_offsets":[4,8])"), 8, "bytes 0 to 4 of the data before"},
        Refused{"hole_in_the_middle",
                R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],)"
                R"("data_offsets":[2,3]}})",
                3, "bytes 1 to 2 of the data before tensor \"b\" belong to no tensor"},
        Refused{"bytes_behind", entry(R"("shape":[1],"data_offsets":[0,4])"), 26, "22 bytes after the last tensor"},
        Refused{"bytes_without_tensors", "{}", 1, "1 bytes after the last tensor"},
        Refused{"two_bytes_short", entry(R"("shape":[2],"data_offsets":[0,8])"), 6, "(2 missing)"},
        Refused{"shape_larger_than_offsets", entry(R"("shape":[3],"data_offsets":[0,8])"), 8,
                "data_offsets [0, 8] span 8 bytes, but shape [3] of F32 needs 12"},
        Refused{"element_count_overflows", entry(R"("shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0])"),
                0, "overflows"},
        Refused{"byte_count_overflows", entry(R"("shape":[4611686018427387904],"data_offsets":[0,0])", "a", "F64"), 0,
                "overflows"},
        Refused{"byte_count_wraps_to_the_offsets", entry(R"("shape":[4611686018427387905],"data_offsets":[0,4])"), 4,
                "overflows"},
        Refused{"half_a_byte", entry(R"("shape":[3],"data_offsets":[0,2])", "a", "F4"), 2, "not a whole number"},
        Refused{"six_bits_over", entry(R"("shape":[5],"data_offsets":[0,4])", "a", "F6_E3M2"), 4, "not a whole number"},
        Refused{"zero_size_inside_another",
                R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"z":{"dtype":"U8","shape":[0],)"
                R"("data_offsets":[2,2]}})",
                4, "overlap"},
        Refused{"zero_size_behind_the_end",
                R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"z":{"dtype":"U8","shape":[0],)"
                R"("data_offsets":[9,9]}})",
                4, "belong to no tensor"}),
    label_of);

TEST(ParseHeader, GivesAbsoluteRangesInFileOrderAndFindsByName) {
  const std::string json = R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[1,13]},"a":{"dtype":"U8","shape":[1],)"
                           R"("data_offsets":[0,1]},"__metadata__":{"format":"pt"}})";
  auto header = parse(json, 13);
  ASSERT_TRUE(header) << header.error().message();
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[1].shape, (Shape{2, 3}));
  EXPECT_EQ(header->tensors[1].dtype, DType::kBfloat16);
  EXPECT_EQ(header->tensors[1].begin, 8 + json.size() + 1);
  EXPECT_EQ(header->tensors[1].byte_size(), 12u);
  EXPECT_EQ(header->find("b"), &header->tensors[1]);
  EXPECT_EQ(header->find("c"), nullptr);
  EXPECT_EQ(header->metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_TRUE(header->notes.empty());
}

TEST(ParseHeader, NotesFieldsThatAreNotPartOfTheFormat) {
  auto header = parse(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1},)"
                      R"("b":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":2}})",
                      0);
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_THAT(header->notes, testing::ElementsAre(HasSubstr("2 of the entries carry a field \"x\"")));
}

TEST(ParseHeader, NotesExtentsThatItCannotShow) {
  auto header = parse(entry(R"("shape":[7,18446744073709551615,0,5],"data_offsets":[0,0])"), 0);
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(header->tensors[0].shape, (Shape{7, INT64_MAX, 0, 5}));
  EXPECT_THAT(header->notes, testing::ElementsAre(HasSubstr("above 2^63-1")));
}

TEST(ParseHeader, StillListsTensorsOfAFileWithBadMetadataWhenAskedTo) {
  for (const char* metadata :
       {R"({"step":0,"format":"pt"})", R"({"step":{"a":[1,{}]},"format":"pt"})", "[[1],{}]", "7"}) {
    const std::string json =
        fmt::format(R"({{"__metadata__":{},"a":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}})", metadata);
    EXPECT_FALSE(parse(json, 1));
    auto header = parse(json, 1, MetadataPolicy::kTolerate);
    ASSERT_TRUE(header) << metadata << header.error().message();
    EXPECT_NE(header->find("a"), nullptr);
    EXPECT_THAT(header->notes, testing::ElementsAre(HasSubstr("__metadata__"))) << metadata;
  }
}

TEST(ParseHeader, NamesTheFirstTensorThatATruncatedFileCuts) {
  const std::string json = R"({"c":{"dtype":"U8","shape":[4],"data_offsets":[8,12]},"b":{"dtype":"U8","shape":[4],)"
                           R"("data_offsets":[4,8]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  auto header = parse(json, 7);
  ASSERT_FALSE(header);
  EXPECT_EQ(
      header.error().message(),
      fmt::format("m.safetensors: expected {} bytes, file has {} (5 missing); first tensor cut is \"b\": the file "
                  "is truncated, download it again",
                  json.size() + 20, json.size() + 15));
}

TEST(ParseHeader, StatesBothNumbersAboveTheHeaderLimit) {
  const std::string json(kMaxHeaderBytes + 1, ' ');
  auto header = parse(json, 0);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().kind(), ErrorKind::kResourceLimit);
  EXPECT_THAT(header.error().message(), HasSubstr("header of 100000001 bytes, the format allows 100000000"));
}

TEST(ParseHeader, RefusesAHundredThousandNamesForTheSameBytes) {
  std::string json = "{";
  for (int i = 0; i < 100000; ++i)
    json += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", i == 0 ? "" : ",", i);
  json += "}";
  auto header = parse(json, 16);
  ASSERT_FALSE(header);
  EXPECT_THAT(header.error().message(), HasSubstr("overlap"));
}

TEST(ParseHeader, MakesNamesSafeForATerminal) {
  auto header = parse(entry(R"("shape":[1],"data_offsets":[0,8])", "\\u001b[2J" + std::string(5000, 'n')), 8);
  ASSERT_FALSE(header);
  EXPECT_THAT(header.error().message(), HasSubstr("\\x1b[2J"));
  EXPECT_LT(header.error().message().size(), 600u);
}

TEST(TensorByteSize, CountsPackedBitsAndRefusesOverflow) {
  EXPECT_EQ(tensor_byte_size(DType::kFloat4E2m1fn, Shape{3, 2}).value(), 3u);
  EXPECT_EQ(tensor_byte_size(DType::kBfloat16, Shape{}).value(), 2u);
  EXPECT_EQ(tensor_byte_size(DType::kFloat32, Shape{0, INT64_MAX}).value(), 0u);
  EXPECT_EQ(tensor_byte_size(DType::kFloat4E2m1fn, Shape{3}).error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(tensor_byte_size(DType::kFloat64, Shape{INT64_MAX}).error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(tensor_byte_size(DType::kInt4, Shape{2}).error().kind(), ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace maxport::safetensors
