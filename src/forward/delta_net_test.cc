#include "forward/delta_net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "forward/layers.h"

namespace maxport::forward {
namespace {

using ::testing::ElementsAre;

TEST(Convolution, LooksBackWithinItsSequenceOnly) {
  Batch batch;
  batch.append({1, 2, 3});
  batch.append({1});
  Matrix x(4, 1);
  x.data = {1, 2, 3, 4};
  const std::vector<float> kernel = {10, 1};  // ten times the one before, plus itself
  causal_convolution(x, kernel, 2, batch);
  const auto silu = [](float v) { return activate(Activation::kSilu, v); };
  EXPECT_THAT(x.data, ElementsAre(silu(1), silu(12), silu(23), silu(4)));
}

TEST(Groups, AreCutPartByPart) {
  Matrix x(1, 6);
  x.data = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> widths = {1, 2};
  const auto parts = split_groups(x, 2, widths);
  EXPECT_THAT(parts[0].data, ElementsAre(1, 4));
  EXPECT_THAT(parts[1].data, ElementsAre(2, 3, 5, 6));
}

// One head with keys and values of one element, no convolution, and a norm that keeps the sign: the rule by hand.
class DeltaRule : public ::testing::Test {
 protected:
  std::vector<float> run(const std::vector<float>& keys, const std::vector<float>& values, float beta, float time) {
    const auto tokens = static_cast<int64_t>(keys.size());
    Batch batch;
    batch.append(std::vector<int32_t>(keys.size(), 1));
    DeltaNetInputs in{Matrix(tokens, 4), Matrix(tokens, 2), Matrix(tokens, 1), Matrix(tokens, 1)};
    for (int64_t t = 0; t < tokens; ++t) {
      // The queries are one; silu is undone beforehand so that keys and values are those given.
      const auto at = static_cast<size_t>(t);
      float* row = in.qkv.row(t);
      row[0] = inverse_silu(1);
      row[1] = inverse_silu(keys[at]);
      row[2] = inverse_silu(values[at]);
      row[3] = inverse_silu(1);  // a second value, so that the norm keeps the ratio
      in.gate.row(t)[0] = in.gate.row(t)[1] = 1;
      in.beta.row(t)[0] = beta;
      in.time.row(t)[0] = time;
    }
    DeltaNetWeights weights{{1, 1, 1, 1}, {0}, {0}, {1, 1}, 0, false};
    const DeltaNetShape shape{1, 1, 1, 2, 1};
    const Matrix out = gated_delta_net(std::move(in), weights, shape, batch);
    std::vector<float> ratios;
    for (int64_t t = 0; t < tokens; ++t) ratios.push_back(out.row(t)[0] / out.row(t)[1]);
    return ratios;
  }

  static float inverse_silu(float y) {
    float x = y;
    for (int i = 0; i < 100; ++i) x = y / sigmoid(x);
    return x;
  }
};

TEST_F(DeltaRule, ReplacesWhatAKeyHeld) {
  // With beta 1 (sigmoid of a large number) and no decay the state is always the last value.
  const auto ratios = run({1, 1, 1}, {2, 5, 0.5}, 100, -100);
  EXPECT_NEAR(ratios[0], 2, 1e-4);
  EXPECT_NEAR(ratios[1], 5, 1e-4);
  EXPECT_NEAR(ratios[2], 0.5, 1e-4);
}

TEST_F(DeltaRule, MovesHalfTheWayForABetaOfOneHalf) {
  // State: 1 then (1 + 5) / 2 ... over 0.5 then 0.75 for the second value.
  const auto ratios = run({1, 1}, {2, 5}, 0, -100);
  EXPECT_NEAR(ratios[0], 2, 1e-4);
  EXPECT_NEAR(ratios[1], (0.5 * 1 + 0.5 * 5) / 0.75, 1e-3);
}

TEST_F(DeltaRule, ForgetsWithTime) {
  // softplus(100) = 100: the decay exp(-100) clears the state, so that only the new half counts.
  const auto ratios = run({1, 1}, {2, 5}, 0, 100);
  EXPECT_NEAR(ratios[1], 5, 1e-4);
}

}  // namespace
}  // namespace maxport::forward
