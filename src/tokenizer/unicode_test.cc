#include "tokenizer/unicode.h"

#include <gtest/gtest.h>

#include <set>

namespace maxport::tokenizer {
namespace {

TEST(Unicode, NormalizesIntoTheFourForms) {
  EXPECT_EQ(*normalize("e\u0301\ufb01", NormalForm::kNfc), "\u00e9\ufb01");
  EXPECT_EQ(*normalize("\u00e9\ufb01", NormalForm::kNfd), "e\u0301\ufb01");
  EXPECT_EQ(*normalize("e\u0301\ufb01", NormalForm::kNfkc), "\u00e9fi");
  EXPECT_EQ(*normalize("\u00e9\ufb01", NormalForm::kNfkd), "e\u0301fi");
  EXPECT_EQ(*normalize(std::string_view("a\0b", 3), NormalForm::kNfc), std::string_view("a\0b", 3));
}

TEST(Unicode, GivesEveryByteACharacterOfItsOwn) {
  std::set<std::string> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string& character = byte_characters()[static_cast<size_t>(byte)];
    EXPECT_EQ(byte_of_character(first_code_point(character)), byte);
    seen.insert(character);
  }
  EXPECT_EQ(seen.size(), 256u);
  EXPECT_EQ(byte_characters()[' '], "\u0120");
  EXPECT_EQ(byte_characters()['\n'], "\u010a");
  EXPECT_EQ(byte_characters()[0xad], "\u0143");
  EXPECT_FALSE(byte_of_character(0x144));
  EXPECT_FALSE(byte_of_character(' '));
}

TEST(Unicode, KnowsDigitsSpacesAndWords) {
  for (const char32_t c : {U'7', U'\u0663', U'\u216b', U'\u00bd'}) EXPECT_TRUE(is_numeric(c));
  EXPECT_FALSE(is_numeric(U'a'));
  EXPECT_TRUE(is_white_space(0x3000));
  EXPECT_FALSE(is_white_space(0x200b));
  for (const char32_t c : {U'a', U'_', U'9', U'\u6f22', U'\u0301', U'\u200d'}) EXPECT_TRUE(is_word(c));
  for (const char32_t c : {U'-', U' ', U'\u00bd'}) EXPECT_FALSE(is_word(c));
}

TEST(Unicode, ReplacesEachMaximalPartOfMalformedText) {
  EXPECT_EQ(replace_malformed("a\xe2\x82z"), "a\ufffdz");
  EXPECT_EQ(replace_malformed("\xf0\x9f\x98"), "\ufffd");
  EXPECT_EQ(replace_malformed("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(replace_malformed("\xc0\xaf\xff"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(replace_malformed("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");
  EXPECT_EQ(replace_malformed("\xe2"), "\ufffd");
  EXPECT_EQ(replace_malformed("\u00e9\U0001f600"), "\u00e9\U0001f600");
}

}  // namespace
}  // namespace maxport::tokenizer
