#include "base/utf8.h"

#include <gtest/gtest.h>

namespace maxport {
namespace {

TEST(Utf8, AcceptsEachLengthAndItsExtremes) {
  for (const char* text : {"a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
                           "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"})
    EXPECT_TRUE(is_valid_utf8(text)) << text;
}

TEST(Utf8, RefusesOverlongSurrogateAndCutForms) {
  for (const char* text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\xf0\x90\x80"})
    EXPECT_FALSE(is_valid_utf8(text));
}

}  // namespace
}  // namespace maxport
