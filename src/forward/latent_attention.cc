#include "forward/latent_attention.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "forward/attention.h"
#include "forward/matmul.h"

namespace maxport::forward {
namespace {

/// What one query may see of the keys up to its own position.
std::vector<bool> seen_keys(std::span<const float> scores, const Indexer& options) {
  std::vector<bool> seen(scores.size(), true);
  const auto count = static_cast<size_t>(options.count);
  if (scores.size() <= count) return seen;
  std::vector<float> sorted(scores.begin(), scores.end());
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(count) - 1, std::greater<>());
  const float last = sorted[count - 1];
  const auto above = static_cast<size_t>(std::ranges::count_if(scores, [&](float score) { return score > last; }));
  size_t ties = options.keep_ties ? scores.size() : count - above;
  for (size_t k = 0; k < scores.size(); ++k) {
    if (scores[k] > last) continue;
    seen[k] = scores[k] == last && ties > 0;
    if (seen[k]) --ties;
  }
  return seen;
}

/// [length, length]
Matrix index_scores(const Matrix& q, const Matrix& k, const Matrix& weights, const Batch::Sequence& s,
                    const Indexer& options) {
  Matrix scores(s.length, s.length), one(s.length, s.length);
  for (int64_t head = 0; head < options.heads; ++head) {
    multiply_transposed(view(one), {q.row(s.begin) + head * options.head_dim, s.length, options.head_dim, q.cols},
                        {k.row(s.begin), s.length, options.head_dim, k.cols});
    for (int64_t r = 0; r < s.length; ++r) {
      const float weight = weights.row(s.begin + r)[head];
      for (int64_t c = 0; c < s.length; ++c) scores.row(r)[c] += weight * std::max(0.0f, one.row(r)[c]);
    }
  }
  return scores;
}

}  // namespace

Matrix attend_latent(Matrix q, const Matrix& kv, Matrix key, const Batch& batch, const Rotary& rotary,
                     const LatentAttention& o, HiddenKeys hidden) {
  const int64_t key_dim = o.nope_dim + o.rope_dim, pair_dim = o.nope_dim + o.value_dim;
  MAXPORT_CHECK(q.cols == o.heads * key_dim && kv.cols == o.heads * pair_dim && key.cols == o.rope_dim);
  apply_rotary(q, key_dim, batch.positions, rotary, o.nope_dim);
  apply_rotary(key, o.rope_dim, batch.positions, rotary);
  Matrix k(q.rows, q.cols), v(q.rows, o.heads * o.value_dim);
  for (int64_t r = 0; r < q.rows; ++r) {
    for (int64_t head = 0; head < o.heads; ++head) {
      const float* pair = kv.row(r) + head * pair_dim;
      float* turning = std::copy_n(pair, o.nope_dim, k.row(r) + head * key_dim);
      std::copy_n(key.row(r), o.rope_dim, turning);
      std::copy_n(pair + o.nope_dim, o.value_dim, v.row(r) + head * o.value_dim);
    }
  }
  AttentionOptions options{o.heads, o.heads, key_dim, o.value_dim, o.scale, o.soft_cap};
  options.hidden = std::move(hidden);
  return attend(q, k, v, batch, options);
}

HiddenKeys select_keys(Matrix q, Matrix k, const Matrix& weights, const Batch& batch, const Rotary& rotary,
                       const Indexer& options) {
  MAXPORT_CHECK(q.cols == options.heads * options.head_dim && k.cols == options.head_dim &&
                weights.cols == options.heads);
  apply_rotary(q, options.head_dim, batch.positions, rotary);
  apply_rotary(k, options.head_dim, batch.positions, rotary);
  auto seen = std::make_shared<std::vector<std::vector<bool>>>(static_cast<size_t>(q.rows));
  for (const Batch::Sequence& s : batch.sequences) {
    const Matrix scores = index_scores(q, k, weights, s, options);
    for (int64_t r = 0; r < s.length; ++r)
      (*seen)[static_cast<size_t>(s.begin + r)] = seen_keys({scores.row(r), static_cast<size_t>(r + 1)}, options);
  }
  return [seen, positions = batch.positions](int64_t query, int64_t key) {
    return !(*seen)[static_cast<size_t>(query)][static_cast<size_t>(positions[static_cast<size_t>(key)])];
  };
}

void layer_norm(Matrix& x, std::span<const float> weight, std::span<const float> bias, double epsilon) {
  MAXPORT_CHECK(static_cast<size_t>(x.cols) == weight.size() && weight.size() == bias.size());
  const auto width = static_cast<double>(x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    const std::span<float> row(x.row(r), weight.size());
    double sum = 0, squares = 0;
    for (const float value : row) sum += value;
    const double mean = sum / width;
    for (const float value : row) squares += (value - mean) * (value - mean);
    const double factor = 1 / std::sqrt(squares / width + epsilon);
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>((row[i] - mean) * factor) * weight[i] + bias[i];
  }
}

}  // namespace maxport::forward
