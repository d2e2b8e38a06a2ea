#include "forward/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace maxport::forward {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

Matrix matrix(int64_t rows, int64_t cols, std::vector<float> values) {
  Matrix out(rows, cols);
  out.data = std::move(values);
  return out;
}

TEST(RmsNorm, DividesByTheRootOfTheMeanSquareAndMultipliesByTheWeight) {
  Matrix x = matrix(1, 2, {3, 4});  // mean square 12.5
  rms_norm(x, std::vector<float>{1, 2}, 0);
  EXPECT_NEAR(x.data[0], 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(x.data[1], 8 / std::sqrt(12.5), 1e-6);
}

TEST(RmsNorm, AddsTheOffsetToTheWeightAndTheEpsilonToTheMean) {
  Matrix x = matrix(1, 2, {3, 4});
  rms_norm(x, std::vector<float>{0, 1}, 12.5, 1);
  EXPECT_NEAR(x.data[0], 3 / 5.0, 1e-6);
  EXPECT_NEAR(x.data[1], 8 / 5.0, 1e-6);
}

TEST(RmsNorm, TreatsEachHeadOfARowByItself) {
  Matrix x = matrix(1, 4, {3, 4, 30, 40});
  rms_norm(x, std::vector<float>{1, 1}, 0);
  EXPECT_NEAR(x.data[0], x.data[2], 1e-6);
  EXPECT_NEAR(x.data[1], x.data[3], 1e-6);
  Matrix whole = matrix(1, 4, {3, 4, 30, 40});
  rms_norm(whole, std::vector<float>{1, 1, 1, 1}, 0);
  EXPECT_LT(whole.data[0], 0.5 * x.data[0]);
}

TEST(L2Norm, GivesEachRunLengthOne) {
  Matrix x = matrix(1, 4, {3, 4, 0, 0.5});
  l2_norm(x, 2, 0);
  EXPECT_THAT(x.data, ElementsAre(FloatNear(0.6f, 1e-6f), FloatNear(0.8f, 1e-6f), 0, 1));
}

TEST(Activation, HasTheValuesOfItsDefinition) {
  EXPECT_NEAR(activate(Activation::kSilu, 1), 0.7310586, 1e-6);
  EXPECT_NEAR(activate(Activation::kGelu, 1), 0.8413447, 1e-6);
  EXPECT_NEAR(activate(Activation::kGeluTanh, 1), 0.8411920, 1e-6);
  EXPECT_NEAR(activate(Activation::kGeluTanh, -2), -0.0454023, 1e-6);
}

TEST(Activation, IsFoundByTheNamesOfBothLibraries) {
  EXPECT_EQ(*activation_of("silu", false), Activation::kSilu);
  EXPECT_EQ(*activation_of("gelu", false), Activation::kGelu);
  EXPECT_EQ(*activation_of("gelu", true), Activation::kGeluTanh);
  EXPECT_EQ(*activation_of("gelu_pytorch_tanh", false), Activation::kGeluTanh);
  EXPECT_EQ(activation_of("relu6", false).error().kind(), ErrorKind::kUnsupported);
}

TEST(SoftCap, BendsLargeValuesAndLeavesThemForACapOfZero) {
  Matrix x = matrix(1, 2, {1, 1000});
  soft_cap(x, 30);
  EXPECT_NEAR(x.data[0], 30 * std::tanh(1 / 30.0), 1e-6);
  EXPECT_NEAR(x.data[1], 30, 1e-6);
  Matrix same = matrix(1, 2, {1, 1000});
  soft_cap(same, 0);
  EXPECT_THAT(same.data, ElementsAre(1, 1000));
}

TEST(Softplus, DoesNotOverflow) {
  EXPECT_NEAR(softplus(0), std::log(2), 1e-6);
  EXPECT_FLOAT_EQ(softplus(100), 100);
  EXPECT_NEAR(softplus(-100), 0, 1e-6);
}

TEST(Softmax, SumsToOneAlsoForLargeLogits) {
  Matrix x = matrix(2, 2, {1000, 1000, 0, std::log(3.0f)});
  softmax_rows(x);
  EXPECT_THAT(x.data, ElementsAre(0.5, 0.5, FloatNear(0.25f, 1e-6f), FloatNear(0.75f, 1e-6f)));
}

TEST(Sums, WorkByRowAndElement) {
  Matrix x = matrix(2, 2, {1, 2, 3, 4});
  add_bias(x, std::vector<float>{10, 20});
  add(x, matrix(2, 2, {1, 1, 1, 1}));
  multiply_elements(x, matrix(2, 2, {1, 2, 1, 2}));
  scale(x, 0.5f);
  EXPECT_THAT(x.data, ElementsAre(6, 23, 7, 25));
  EXPECT_THAT(columns(x, 1, 1).data, ElementsAre(23, 25));
}

}  // namespace
}  // namespace maxport::forward
