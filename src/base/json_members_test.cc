#include "base/json_members.h"

#include <gtest/gtest.h>

namespace maxport {
namespace {

TEST(JsonMembers, NamesThePathAndTheKindOfAWrongMember) {
  const Json json = Json::parse(R"({"a":{"n":7,"s":"x","big":18446744073709551615,"f":1.0},"l":[]})");
  JsonMembers members = *JsonMembers::of(json["a"], "f.json: a");
  EXPECT_EQ(*members.integer("n", 0, 7), 7);
  EXPECT_EQ(members.integer("n", 8, 9).error().message(), "f.json: a: n: 7 is not between 8 and 9");
  EXPECT_EQ(members.integer("big").error().message(), "f.json: a: big: 18446744073709551615 is not between "
                                                      "-9223372036854775808 and 9223372036854775807");
  EXPECT_EQ(members.integer("f").error().message(), "f.json: a: f: expected an integer, found a number");
  EXPECT_EQ(members.text("n").error().message(), "f.json: a: n: expected a string, found an integer");
  EXPECT_EQ(members.get("none").error().message(), "f.json: a: member \"none\" is missing");
  EXPECT_EQ(JsonMembers::of(json["l"], "f.json: l").error().message(), "f.json: l: expected an object, found an array");
  EXPECT_EQ(json_boolean(json["l"], "x").error().message(), "x: expected true or false, found an array");
}

TEST(JsonMembers, ChoosesAmongTexts) {
  const Json json = {{"order", "F"}};
  JsonMembers members = *JsonMembers::of(json, "x");
  EXPECT_EQ(*members.choice("order", {"C", "F"}), 1u);
  EXPECT_EQ(members.choice("order", {"A", "B"}).error().message(), "x: order: \"F\" is not one of \"A\", \"B\"");
}

TEST(JsonMembers, RefusesMembersThatNobodyAskedFor) {
  const Json json = {{"a", 1}, {"b\n", 2}};
  JsonMembers members = *JsonMembers::of(json, "x");
  EXPECT_NE(members.find("a"), nullptr);
  EXPECT_EQ(members.find("c"), nullptr);
  EXPECT_EQ(members.unknown(), (std::vector<std::string>{"b\n"}));
  EXPECT_EQ(members.finish().error().message(), "x: unknown member \"b\\x0a\"");
  EXPECT_NE(members.find("b\n"), nullptr);
  EXPECT_TRUE(members.finish());
}

}  // namespace
}  // namespace maxport
