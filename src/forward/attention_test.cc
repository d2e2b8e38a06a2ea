#include "forward/attention.h"

#include <gtest/gtest.h>

#include <cmath>
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

// The definition, one score at a time.
Matrix by_definition(const Matrix& q, const Matrix& k, const Matrix& v, const Batch& batch, const AttentionOptions& o) {
  Matrix out(q.rows, o.heads * o.value_dim);
  for (const auto& s : batch.sequences) {
    for (int64_t t = 0; t < s.length; ++t) {
      for (int64_t h = 0; h < o.heads; ++h) {
        const int64_t kv = h / (o.heads / o.kv_heads);
        std::vector<double> weights;
        double sum = o.sinks.empty() ? 0 : std::exp(static_cast<double>(o.sinks[static_cast<size_t>(h)]));
        for (int64_t u = 0; u <= t; ++u) {
          double score = 0;
          for (int64_t i = 0; i < o.key_dim; ++i)
            score +=
                static_cast<double>(q.row(s.begin + t)[h * o.key_dim + i]) * k.row(s.begin + u)[kv * o.key_dim + i];
          score *= o.scale;
          if (o.soft_cap > 0) score = o.soft_cap * std::tanh(score / o.soft_cap);
          const bool seen = (o.window == 0 || t - u < o.window) && !(o.hidden && o.hidden(s.begin + t, s.begin + u));
          weights.push_back(seen ? std::exp(score) : 0);
          sum += weights.back();
        }
        for (int64_t i = 0; i < o.value_dim; ++i) {
          double value = 0;
          for (int64_t u = 0; u <= t; ++u)
            value += weights[static_cast<size_t>(u)] / sum * v.row(s.begin + u)[kv * o.value_dim + i];
          out.row(s.begin + t)[h * o.value_dim + i] = static_cast<float>(value);
        }
      }
    }
  }
  return out;
}

class Attention : public ::testing::Test {
 protected:
  Attention() {
    batch_.append({1, 2, 3, 4, 5, 6, 7});
    batch_.append({1, 2, 3});
  }

  double difference(const AttentionOptions& options) const {
    const Matrix q = random_matrix(10, options.heads * options.key_dim, 1),
                 k = random_matrix(10, options.kv_heads * options.key_dim, 2);
    const Matrix v = random_matrix(10, options.kv_heads * options.value_dim, 3);
    const Matrix got = attend(q, k, v, batch_, options), want = by_definition(q, k, v, batch_, options);
    EXPECT_EQ(got.data.size(), want.data.size());
    double largest = 0;
    for (size_t i = 0; i < got.data.size(); ++i)
      largest = std::max<double>(largest, std::abs(got.data[i] - want.data[i]));
    return largest;
  }

  Batch batch_;
};

TEST_F(Attention, IsCausalAndSharesKeysBetweenHeads) { EXPECT_LT(difference({4, 2, 6, 6, 0.7}), 1e-6); }
TEST_F(Attention, TakesValuesOfAnotherWidthThanKeys) { EXPECT_LT(difference({4, 4, 6, 3}), 1e-6); }
TEST_F(Attention, SeesAWindowOnly) { EXPECT_LT(difference({4, 2, 6, 6, 1, 0, 3}), 1e-6); }
TEST_F(Attention, CapsItsScores) { EXPECT_LT(difference({4, 2, 6, 6, 5, 1.5}), 1e-6); }

TEST_F(Attention, LetsSinksTakePartOfTheSoftmax) {
  const std::vector<float> sinks = {0.5f, -1, 2, 0};
  EXPECT_LT(difference({4, 2, 6, 6, 1, 0, 0, sinks}), 1e-6);
}

TEST_F(Attention, DoesNotSeeWhatIsHidden) {
  EXPECT_LT(difference({.heads = 4,
                        .kv_heads = 2,
                        .key_dim = 6,
                        .value_dim = 6,
                        .hidden = [](int64_t q, int64_t k) { return q != k && (q + k) % 3 == 0; }}),
            1e-6);
}

TEST_F(Attention, KeepsSequencesApart) {
  const AttentionOptions options{2, 2, 4, 4};
  Matrix q = random_matrix(10, 8, 1), k = random_matrix(10, 8, 2), v = random_matrix(10, 8, 3);
  const Matrix before = attend(q, k, v, batch_, options);
  for (int64_t c = 0; c < 8; ++c) k.row(2)[c] = v.row(2)[c] = 100;  // of the first sequence
  const Matrix after = attend(q, k, v, batch_, options);
  for (int64_t r = 7; r < 10; ++r)
    for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(before.row(r)[c], after.row(r)[c]);
  EXPECT_NE(before.row(3)[0], after.row(3)[0]);
  EXPECT_EQ(before.row(1)[0], after.row(1)[0]);
}

}  // namespace
}  // namespace maxport::forward
