#include "orbax/tree.h"

#include <gmock/gmock.h>

namespace maxport::orbax {
namespace {

using testing::HasSubstr;

Result<> check(const std::vector<TreePath>& paths) {
  std::vector<TreeEntry> entries;
  for (const TreePath& path : paths) entries.push_back({path});
  return check_tree(entries, ErrorKind::kCorruptData);
}

TEST(PythonQuoted, WritesStringsAsPythonWritesThem) {
  // What repr() of Python 3.11 gives.
  const std::pair<std::string, std::string> cases[] = {
      {"", "''"},
      {"a", "'a'"},
      {"it's", "\"it's\""},
      {"say \"x\"", "'say \"x\"'"},
      {"both ' and \"", "'both \\' and \"'"},
      {"back\\slash", "'back\\\\slash'"},
      {std::string("\n\r\t\0\x1b\x7f", 6), "'\\n\\r\\t\\x00\\x1b\\x7f'"},
      {"\u0080\u009f\u00a0\u00ad", "'\\x80\\x9f\\xa0\\xad'"},
      {"\u00e9\u6f22\U0001f600", "'\u00e9\u6f22\U0001f600'"},
      {"\u200b\u2028\u3000\ufeff\ue000\U000e0001", "'\\u200b\\u2028\\u3000\\ufeff\\ue000\\U000e0001'"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(python_quoted(text), expected);
}

TEST(TreePath, HasTheNamesThatOrbaxGivesIt) {
  const TreePath path = {{"params", false}, {"layers.x", false}, {"0", true}};
  EXPECT_EQ(parameter_name(path), "params.layers.x.0");
  EXPECT_EQ(tuple_text(path), "('params', 'layers.x', '0')");
  EXPECT_EQ(tuple_text(std::span(path).first(1)), "('params',)");
  EXPECT_EQ(tuple_text({}), "()");
  EXPECT_EQ(parameter_name({}), "");
  const std::vector<std::string> keys = {"params", "params"};
  EXPECT_EQ(dictionary_path(keys), (TreePath{{"params", false}, {"params", false}}));
}

TEST(CheckTree, AcceptsDictionariesListsAndARootLeaf) {
  EXPECT_TRUE(check({{}}));
  EXPECT_TRUE(check({{{"a"}, {"b"}}, {{"a"}, {"c"}}, {{"ab"}}}));
  std::vector<TreePath> list;
  for (const char* index : {"10", "9", "8", "7", "6", "5", "4", "3", "2", "1", "0"}) list.push_back({{"l"}, {index, true}});
  list.push_back({{"m"}, {"0", true}, {"0", true}});
  list.push_back({{"m"}, {"0", true}, {"1", true}, {"x"}});
  EXPECT_TRUE(check(list));
  // Below different keys the same index is another node.
  EXPECT_TRUE(check({{{"a"}, {"0", true}, {"x"}}, {{"a"}, {"0", true}, {"y"}}, {{"b"}, {"0", true}}}));
}

TEST(CheckTree, RefusesWhatIsNoTree) {
  struct Case {
    std::vector<TreePath> paths;
    const char* text;
  };
  const Case cases[] = {
      {{{{"a"}}, {{"a"}}}, "leaf ('a',) occurs twice"},
      {{{{"a"}}, {{"a"}, {"b"}}}, "leaf ('a', 'b') lies below another leaf, ('a',)"},
      {{{}, {{"a"}}}, "leaf ('a',) lies below another leaf, ()"},
      {{{{"a"}, {"0", true}}, {{"a"}, {"x"}}}, "its parent holds both list indices and dictionary keys"},
      {{{{"a"}, {"0", true}}, {{"a"}, {"2", true}}}, "list ('a',): index 1 is missing"},
      {{{{"1", true}}}, "list (): index 0 is missing"},
      {{{{"a"}, {"1", true}}, {{"b"}}}, "list ('a',): index 0 is missing"},
      {{{{"a"}, {"b"}, {"1", true}}, {{"a"}, {"c"}}}, "list ('a', 'b'): index 0 is missing"},
      {{{{"a"}, {"x", true}}}, "\"x\" is not a list index"},
      {{{{"a"}, {"00", true}}}, "\"00\" is not a list index"},
      {{{{"a"}, {"", true}}}, "\"\" is not a list index"},
      {{{{"a.b"}}, {{"a"}, {"b"}}}, "would both be stored as \"a.b\"; rename one of them"},
      {{{{""}, {""}}, {{"."}}}, "would both be stored as \".\""},
      {{{{std::string("a\0", 2)}}}, "must be valid UTF-8 without NUL"},
      {{{{"\xff"}}}, "must be valid UTF-8 without NUL"},
      {{TreePath(257, {"a"})}, "257 levels deep"},
  };
  for (const Case& c : cases) {
    auto status = check(c.paths);
    ASSERT_FALSE(status) << c.text;
    EXPECT_THAT(status.error().message(), HasSubstr(c.text));
  }
}

TEST(CheckTree, LetsEmptyNodesShareANameSinceNothingIsStored) {
  const TreePath a = {{"a.b"}}, b = {{"a"}, {"b"}};
  const TreeEntry entries[] = {{a, false}, {b, true}};
  EXPECT_TRUE(check_tree(entries, ErrorKind::kCorruptData));
}

}  // namespace
}  // namespace maxport::orbax
