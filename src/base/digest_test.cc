#include "base/digest.h"

#include <gtest/gtest.h>

namespace maxport {
namespace {

TEST(Sha256, MatchesThePublishedVectorWholeAndInPieces) {
  const std::string want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(sha256_hex(as_bytes("abc")), want);
  Sha256 digest;
  digest.update(as_bytes("a"));
  digest.update(as_bytes("bc"));
  EXPECT_EQ(digest.finish_hex(), want);
}

TEST(Xxh128, MatchesTheLibrarysReferenceForEmptyInput) {
  EXPECT_EQ(xxh128_hex({}), "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace maxport
