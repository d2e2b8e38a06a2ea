#include "forward/rotary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace maxport::forward {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

Matrix row(std::vector<float> values) {
  Matrix out(1, static_cast<int64_t>(values.size()));
  out.data = std::move(values);
  return out;
}

constexpr double kQuarter = std::numbers::pi / 2;

TEST(Rotary, FrequenciesFallGeometrically) {
  EXPECT_THAT(rotary_frequencies(100, 4), ElementsAre(1, DoubleNear(0.1, 1e-12)));
  EXPECT_THAT(linear_scaled(rotary_frequencies(100, 4), 8), ElementsAre(0.125, DoubleNear(0.0125, 1e-12)));
}

TEST(Rotary, TurnsHalvesOrNeighbours) {
  Matrix halves = row({1, 2, 3, 4});
  apply_rotary(halves, 4, std::vector<int64_t>{1}, {{kQuarter, 0}});
  EXPECT_NEAR(halves.data[0], -3, 1e-6);
  EXPECT_NEAR(halves.data[2], 1, 1e-6);
  EXPECT_EQ(halves.data[1], 2);
  EXPECT_EQ(halves.data[3], 4);
  Matrix neighbours = row({1, 2, 3, 4});
  apply_rotary(neighbours, 4, std::vector<int64_t>{1}, {{kQuarter, 0}, Pairing::kInterleaved});
  EXPECT_NEAR(neighbours.data[0], -2, 1e-6);
  EXPECT_NEAR(neighbours.data[1], 1, 1e-6);
  EXPECT_EQ(neighbours.data[2], 3);
}

TEST(Rotary, TurnsEachHeadAndOnlyThePartThatIsAskedFor) {
  Matrix x = row({9, 1, 2, 9, 8, 1, 2, 8});
  apply_rotary(x, 4, std::vector<int64_t>{1}, {{kQuarter}, Pairing::kHalves, 2}, 1);
  for (const size_t head : {0u, 4u}) {
    EXPECT_NEAR(x.data[head + 1], -4, 1e-6);  // the attention factor doubles what turns
    EXPECT_NEAR(x.data[head + 2], 2, 1e-6);
    EXPECT_EQ(x.data[head], x.data[head + 3]);
  }
}

TEST(Rotary, ScoresDependOnTheDistanceAlone) {
  const Rotary rotary{rotary_frequencies(10000, 8)};
  const auto score = [&](int64_t query, int64_t key) {
    Matrix x(2, 8);
    for (int i = 0; i < 8; ++i)
      x.data[static_cast<size_t>(i)] = x.data[static_cast<size_t>(i + 8)] = static_cast<float>(i + 1);
    apply_rotary(x, 8, std::vector<int64_t>{query, key}, rotary);
    float sum = 0;
    for (size_t i = 0; i < 8; ++i) sum += x.data[i] * x.data[i + 8];
    return sum;
  };
  EXPECT_NEAR(score(7, 3), score(14, 10), 1e-3);
  EXPECT_GT(std::abs(score(7, 3) - score(7, 4)), 1);
}

TEST(Rotary, Llama3KeepsShortWavesAndDividesLongOnes) {
  const double short_wave = 2 * std::numbers::pi / 100, long_wave = 2 * std::numbers::pi / 10000;
  const double middle = 2 * std::numbers::pi / 4096;
  const auto scaled = llama3_scaled({short_wave, long_wave, middle}, {8, 1, 4, 8192});
  EXPECT_DOUBLE_EQ(scaled[0], short_wave);
  EXPECT_DOUBLE_EQ(scaled[1], long_wave / 8);
  EXPECT_NEAR(scaled[2] / middle, (2.0 / 3) / 8 + 1.0 / 3, 1e-12);  // 8192 / 4096 = 2, a third of the way from 1 to 4
}

TEST(Rotary, YarnMixesBetweenItsTwoDimensions) {
  const auto plain = rotary_frequencies(10000, 64);
  const auto yarn = yarn_frequencies(10000, 64, {40, 32, 1, 4096, true});
  EXPECT_DOUBLE_EQ(yarn.front(), plain.front());
  EXPECT_NEAR(yarn.back(), plain.back() / 40, 1e-15);
  for (size_t i = 1; i < yarn.size(); ++i) EXPECT_LT(yarn[i], yarn[i - 1]);
  EXPECT_NE(yarn[15], yarn_frequencies(10000, 64, {40, 32, 1, 4096, false})[15]);
  EXPECT_NEAR(yarn_mscale(40), 0.1 * std::log(40) + 1, 1e-12);
  EXPECT_EQ(yarn_mscale(0.5), 1);
}

}  // namespace
}  // namespace maxport::forward
