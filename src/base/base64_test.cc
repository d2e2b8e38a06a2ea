#include "base/base64.h"

#include <gtest/gtest.h>

namespace maxport {
namespace {

TEST(Base64Url, EncodesTheVectorsOfRfc4648AndDecodesThemAgain) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},           {"f", "Zg=="},         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},    {"foob", "Zm9vYg=="},  {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "-_-_"}};
  for (const auto& [plain, encoded] : vectors) {
    EXPECT_EQ(base64_url(as_bytes(plain)), encoded);
    const auto decoded = decode_base64_url(encoded);
    ASSERT_TRUE(decoded) << encoded;
    EXPECT_EQ(as_text(*decoded), plain);
  }
}

TEST(Base64Url, RefusesWhatIsNoEncoding) {
  for (const char* text : {"Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zg==Zg==", "+/+/", "Zm 9", "Zm9v\n"})
    EXPECT_FALSE(decode_base64_url(text)) << text;
}

}  // namespace
}  // namespace maxport
