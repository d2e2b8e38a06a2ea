#include "forward/latent_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "forward/attention.h"

namespace maxport::forward {
namespace {

const Rotary kStill{{0}};

Batch batch_of(const std::vector<int>& lengths) {
  Batch batch;
  for (const int length : lengths) batch.append(std::vector<int32_t>(static_cast<size_t>(length)));
  return batch;
}

Matrix column(std::vector<float> values) {
  Matrix out(static_cast<int64_t>(values.size()), 1);
  out.data = std::move(values);
  return out;
}

/// Keys of one head of two elements, the second 0.
Matrix keys(const std::vector<float>& values) {
  Matrix out(static_cast<int64_t>(values.size()), 2);
  for (int64_t r = 0; r < out.rows; ++r) out.row(r)[0] = values[static_cast<size_t>(r)];
  return out;
}

std::string seen_by(const HiddenKeys& hidden, int64_t query, int64_t begin) {
  std::string out;
  for (int64_t key = begin; key <= query; ++key) out += hidden(query, key) ? '-' : 'x';
  return out;
}

TEST(LatentAttention, SelectsTheKeysOfTheLargestScoresUpToTheQuery) {
  const HiddenKeys hidden = select_keys(keys({1, 1, 1, 1, 1}), keys({3, 1, 4, 2, 9}), column({1, 1, 1, 1, 1}),
                                        batch_of({5}), kStill, {1, 2, 2, false});
  EXPECT_EQ(seen_by(hidden, 1, 0), "xx");
  EXPECT_EQ(seen_by(hidden, 2, 0), "x-x");
  EXPECT_EQ(seen_by(hidden, 3, 0), "x-x-");
  EXPECT_EQ(seen_by(hidden, 4, 0), "--x-x");
}

TEST(LatentAttention, CountsPositionsInEachSequence) {
  const HiddenKeys hidden = select_keys(keys({1, 1, 1, 1, 1}), keys({9, 9, 1, 2, 3}), column({1, 1, 1, 1, 1}),
                                        batch_of({2, 3}), kStill, {1, 2, 1, false});
  EXPECT_EQ(seen_by(hidden, 1, 0), "x-");
  EXPECT_EQ(seen_by(hidden, 4, 2), "--x");
}

TEST(LatentAttention, WeighsScoresBelowZeroAsZeroAndKeepsTiesOnDemand) {
  // Scores of the last query: 0, 0, 0, 2.
  const auto select = [](bool ties) {
    return select_keys(keys({1, 1, 1, 1}), keys({-1, -5, 0, 2}), column({1, 1, 1, 1}), batch_of({4}), kStill,
                       {1, 2, 2, ties});
  };
  EXPECT_EQ(seen_by(select(false), 3, 0), "x--x");
  EXPECT_EQ(seen_by(select(true), 3, 0), "xxxx");
}

TEST(LatentAttention, IsPlainAttentionOverKeysThatShareTheirTurningPart) {
  const Batch batch = batch_of({3});
  const Rotary rotary{{0.5}};
  const LatentAttention options{2, 1, 2, 1, 0.7};
  Matrix q(3, 6), kv(3, 4), key(3, 2), k(3, 6), v(3, 2);
  for (size_t i = 0; i < q.data.size(); ++i) q.data[i] = static_cast<float>(i % 5) - 2;
  for (size_t i = 0; i < kv.data.size(); ++i) kv.data[i] = static_cast<float>(i % 7) / 3;
  for (size_t i = 0; i < key.data.size(); ++i) key.data[i] = static_cast<float>(i) - 1;
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t h = 0; h < 2; ++h) {
      k.row(r)[3 * h] = kv.row(r)[2 * h];
      k.row(r)[3 * h + 1] = key.row(r)[0];
      k.row(r)[3 * h + 2] = key.row(r)[1];
      v.row(r)[h] = kv.row(r)[2 * h + 1];
    }
  }
  Matrix turned = q;
  apply_rotary(turned, 3, batch.positions, rotary, 1);
  apply_rotary(k, 3, batch.positions, rotary, 1);
  const Matrix want = attend(turned, k, v, batch, {2, 2, 3, 1, 0.7});
  const Matrix got = attend_latent(q, kv, key, batch, rotary, options, {});
  for (size_t i = 0; i < want.data.size(); ++i) EXPECT_FLOAT_EQ(got.data[i], want.data[i]);
}

TEST(LatentAttention, NormsEachRowToItsMeanAndVariance) {
  Matrix x(1, 4);
  x.data = {1, 3, 5, 7};
  layer_norm(x, std::vector<float>{1, 1, 2, 1}, std::vector<float>{0, 0, 0, 10}, 0);
  const float unit = 1 / std::sqrt(5.0f);
  EXPECT_FLOAT_EQ(x.data[0], -3 * unit);
  EXPECT_FLOAT_EQ(x.data[2], 2 * unit);
  EXPECT_FLOAT_EQ(x.data[3], 10 + 3 * unit);
}

}  // namespace
}  // namespace maxport::forward
