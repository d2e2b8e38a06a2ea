#include "base/error.h"

#include <gtest/gtest.h>

#include <set>

namespace maxport {
namespace {

Result<int> inner() { return fail(ErrorKind::kCorruptData, "found {}, expected {}", 1, 2); }
Result<int> outer() {
  MAXPORT_ASSIGN_OR_RETURN(int value, with_context(inner(), "reading a"));
  return value + 1;
}

TEST(Error, CollectsContextOutermostFirst) {
  auto result = with_context(outer(), "converting m");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(), "converting m: reading a: found 1, expected 2");
  EXPECT_EQ(result.error().kind(), ErrorKind::kCorruptData);
}

TEST(Error, GivesEachKindItsOwnExitCode) {
  std::set<int> codes;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::kInternal); ++kind)
    codes.insert(exit_code(static_cast<ErrorKind>(kind)));
  EXPECT_EQ(codes.size(), 8u);
  EXPECT_FALSE(codes.contains(0));
  EXPECT_FALSE(codes.contains(1));
}

TEST(Printable, EscapesWhatCouldDriveATerminal) {
  EXPECT_EQ(printable("a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(printable("\xc2\x9b" "x"), "\\xc2\\x9bx");
  EXPECT_EQ(printable("\xff" "caf\xc3\xa9"), "\\xff" "caf\xc3\xa9");
}

}  // namespace
}  // namespace maxport
