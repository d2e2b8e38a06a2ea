#include "forward/matmul.h"

#include <gtest/gtest.h>

#include <random>

namespace maxport::forward {
namespace {

Matrix random_matrix(int64_t rows, int64_t cols, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  Matrix out(rows, cols);
  for (float& value : out.data) value = number(random);
  return out;
}

// Large enough that threads take part.
class Multiply : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_multiply_threads(GetParam()); }
  void TearDown() override { set_multiply_threads(1); }
  const Matrix a_ = random_matrix(37, 300, 1), b_ = random_matrix(300, 601, 2);

  double expected(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t k = 0; k < a_.cols; ++k) sum += static_cast<double>(a_.row(i)[k]) * b_.row(k)[j];
    return sum;
  }
};

TEST_P(Multiply, GivesRowsTimesColumns) {
  Matrix out(37, 601);
  multiply(view(out), view(a_), view(b_));
  for (int64_t i = 0; i < out.rows; ++i)
    for (int64_t j = 0; j < out.cols; ++j) ASSERT_NEAR(out.row(i)[j], expected(i, j), 1e-4) << i << "," << j;
}

TEST_P(Multiply, TakesTheSecondFactorTransposedAndAddsOnRequest) {
  Matrix turned(b_.cols, b_.rows), out(37, 601);
  for (int64_t i = 0; i < b_.rows; ++i)
    for (int64_t j = 0; j < b_.cols; ++j) turned.row(j)[i] = b_.row(i)[j];
  multiply_transposed(view(out), view(a_), view(std::as_const(turned)));
  multiply(view(out), view(a_), view(b_), true);
  for (int64_t i = 0; i < out.rows; ++i)
    for (int64_t j = 0; j < out.cols; ++j) ASSERT_NEAR(out.row(i)[j], 2 * expected(i, j), 2e-4) << i << "," << j;
}

TEST_P(Multiply, WritesIntoAPartOfALargerMatrixOnly) {
  Matrix out(37, 700);
  multiply({out.data.data() + 50, 37, 601, 700}, view(a_), view(b_));
  EXPECT_EQ(out.row(3)[49], 0);
  EXPECT_NEAR(out.row(3)[50], expected(3, 0), 1e-4);
  EXPECT_NEAR(out.row(3)[650], expected(3, 600), 1e-4);
  EXPECT_EQ(out.row(3)[651], 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, Multiply, ::testing::Values(1, 2, 5));

}  // namespace
}  // namespace maxport::forward
