#include "forward/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace maxport::forward {
namespace {

using ::testing::ElementsAre;

Matrix matrix(int64_t rows, int64_t cols, std::vector<float> values) {
  Matrix out(rows, cols);
  out.data = std::move(values);
  return out;
}

TEST(Comparison, OfEqualLogitsFindsNothing) {
  const Matrix x = matrix(2, 3, {1, 2, 3, -4, 0, 1});
  const auto c = *compare_logits(x, x);
  EXPECT_EQ(c.max_abs_difference, 0);
  EXPECT_NEAR(c.cosine, 1, 1e-12);
  EXPECT_EQ(c.argmax_agreement(), 1);
  EXPECT_EQ(c.max_kl, 0);
  EXPECT_EQ(c.largest_reference, 4);
  EXPECT_TRUE(c.within(1e-9));
}

TEST(Comparison, SaysWhereAndHowMuchLogitsDiffer) {
  const Matrix model = matrix(2, 2, {1, 2, 0, std::log(3.0f)}), reference = matrix(2, 2, {1, 2, 0, 0});
  const auto c = *compare_logits(model, reference);
  EXPECT_NEAR(c.max_abs_difference, std::log(3), 1e-6);
  EXPECT_EQ(c.max_row, 1);
  EXPECT_EQ(c.max_column, 1);
  // P is 1/2, 1/2 and Q is 1/4, 3/4.
  const double kl = 0.5 * std::log(2) + 0.5 * std::log(2.0 / 3);
  EXPECT_NEAR(c.max_kl, kl, 1e-6);
  EXPECT_NEAR(c.mean_kl, kl / 2, 1e-6);
  EXPECT_EQ(c.max_kl_row, 1);
  EXPECT_EQ(c.kl.size(), 2u);
  EXPECT_EQ(c.argmax_agreements, 1);
  EXPECT_FALSE(c.within(kl / 2));
  EXPECT_TRUE(c.within(kl * 1.01));
}

TEST(Comparison, LeavesThePaddingOfAVocabularyOut) {
  const auto c = *compare_logits(matrix(1, 4, {1, 2, 0, 99}), matrix(1, 2, {1, 2}));
  EXPECT_EQ(c.vocabulary, 2);
  EXPECT_EQ(c.max_kl, 0);
}

TEST(Comparison, NeverPassesWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto c = *compare_logits(matrix(1, 2, {1, nan}), matrix(1, 2, {1, 2}));
  EXPECT_EQ(c.not_finite, 1);
  EXPECT_FALSE(c.within(1e9));
}

TEST(Comparison, RefusesDifferentNumbersOfTokensAndNothing) {
  EXPECT_EQ(compare_logits(Matrix(2, 3), Matrix(1, 3)).error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(compare_logits(Matrix(0, 3), Matrix(0, 3)).error().kind(), ErrorKind::kInvalidArgument);
}

TEST(TopTokens, AreOrderedAndCompared) {
  const std::vector<float> a = {0, 5, 3, 4}, b = {5, 0, 3, 4};
  const auto first = top_tokens(a, 3), second = top_tokens(b, 3);
  EXPECT_THAT((std::vector{first[0].id, first[1].id, first[2].id}), ElementsAre(1, 3, 2));
  EXPECT_THAT((std::vector{second[0].id, second[1].id, second[2].id}), ElementsAre(0, 3, 2));
  const TopAgreement agreement = compare_top_tokens(first, second);
  EXPECT_EQ(agreement.overlap, 2);
  EXPECT_EQ(agreement.compared, 3);
  EXPECT_DOUBLE_EQ(agreement.jaccard, 0.5);
  EXPECT_NEAR(agreement.rank_agreement, 200.0 / 3, 1e-9);
}

TEST(TopTokens, AreAsManyAsThereAre) {
  EXPECT_EQ(top_tokens(std::vector<float>{1, 2}, 10).size(), 2u);
  EXPECT_EQ(compare_top_tokens({}, {}).jaccard, 0);
}

}  // namespace
}  // namespace maxport::forward
