#include "inspect/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/testing.h"

namespace maxport::inspect {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Html, IsOnePageThatLoadsNothing) {
  auto in = inspect(local_storage(), convert::testing::kLlama);
  ASSERT_TRUE(in);
  auto values = read_values(local_storage(), convert::testing::kLlama, *in, {});
  ASSERT_TRUE(values) << values.error().message();
  for (const auto& tensor : *values) {
    ASSERT_TRUE(tensor);
    EXPECT_TRUE(tensor->problem.empty());
  }
  const std::string page = html(*in, *values, {});
  EXPECT_THAT(page, HasSubstr("model.layers.0.mlp.down_proj.weight"));
  EXPECT_THAT(page, HasSubstr("every element was read"));
  EXPECT_THAT(html(*in, *values, 1000), HasSubstr("until 1000 elements"));
  for (const char* outside : {"<link", "src=", "@import", "fetch(", "https://"}) EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, Not(HasSubstr("@DATA@")));
}

TEST(Html, KeepsNamesFromBecomingMarkup) {
  Inspection in;
  in.path = "</script><img src=x onerror=alert(1)>";
  Tensor tensor;
  tensor.name = "a</script><script>alert(1)</script>&\xff\u2028";
  tensor.type = "float32";
  tensor.shape = Shape{1};
  tensor.bytes = 4;
  in.tensors.push_back(tensor);
  const std::string page = html(in, {std::nullopt}, {});
  const size_t data = page.find("id=\"data\">") + 10;
  const std::string block = page.substr(data, page.find("</script>", data) - data);
  EXPECT_THAT(block, HasSubstr("alert(1)"));
  EXPECT_THAT(block, Not(HasSubstr("<")));
  const auto json = parse_json(block, "the page's data");
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ((*json)["path"], in.path);
}

}  // namespace
}  // namespace maxport::inspect
