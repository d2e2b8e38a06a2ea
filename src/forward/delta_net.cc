#include "forward/delta_net.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "forward/layers.h"

namespace maxport::forward {
namespace {

constexpr double kKeyEpsilon = 1e-6;

struct Step {
  const float *query, *key, *value;
  float decay, beta;
};

// One token of one head: `state` is [key_dim, value_dim]; writes value_dim numbers.
void advance(std::span<float> state, const Step& step, std::span<float> scratch, std::span<float> out) {
  const size_t width = out.size(), keys = state.size() / width;
  for (float& value : state) value *= step.decay;
  std::ranges::fill(scratch, 0.0f);
  for (size_t k = 0; k < keys; ++k)
    for (size_t v = 0; v < width; ++v) scratch[v] += state[k * width + v] * step.key[k];
  for (size_t v = 0; v < width; ++v) scratch[v] = (step.value[v] - scratch[v]) * step.beta;
  std::ranges::fill(out, 0.0f);
  for (size_t k = 0; k < keys; ++k)
    for (size_t v = 0; v < width; ++v) out[v] += (state[k * width + v] += step.key[k] * scratch[v]) * step.query[k];
}

Matrix delta_rule(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& decay, const Matrix& beta,
                  const DeltaNetShape& s, const Batch& batch) {
  Matrix out(v.rows, v.cols);
  const int64_t group = s.value_heads / s.key_heads;
  std::vector<float> scratch(static_cast<size_t>(s.value_dim));
  for (const Batch::Sequence& sequence : batch.sequences) {
    for (int64_t head = 0; head < s.value_heads; ++head) {
      std::vector<float> state(static_cast<size_t>(s.key_dim * s.value_dim));
      for (int64_t t = sequence.begin; t < sequence.begin + sequence.length; ++t) {
        const int64_t key = head / group * s.key_dim, value = head * s.value_dim;
        advance(state, {q.row(t) + key, k.row(t) + key, v.row(t) + value, decay.row(t)[head], beta.row(t)[head]},
                scratch, {out.row(t) + value, static_cast<size_t>(s.value_dim)});
      }
    }
  }
  return out;
}

}  // namespace

void causal_convolution(Matrix& x, std::span<const float> kernel, int64_t taps, const Batch& batch) {
  MAXPORT_CHECK(static_cast<int64_t>(kernel.size()) == x.cols * taps);
  const Matrix in = x;
  for (const Batch::Sequence& s : batch.sequences) {
    for (int64_t t = 0; t < s.length; ++t) {
      for (int64_t c = 0; c < x.cols; ++c) {
        float sum = 0;
        for (int64_t j = std::max<int64_t>(0, taps - 1 - t); j < taps; ++j)
          sum += kernel[static_cast<size_t>(c * taps + j)] * in.row(s.begin + t - taps + 1 + j)[c];
        x.row(s.begin + t)[c] = activate(Activation::kSilu, sum);
      }
    }
  }
}

std::vector<Matrix> split_groups(const Matrix& x, int64_t groups, std::span<const int64_t> widths) {
  const int64_t stride = std::accumulate(widths.begin(), widths.end(), int64_t{0});
  MAXPORT_CHECK(x.cols == groups * stride);
  std::vector<Matrix> out;
  int64_t offset = 0;
  for (const int64_t width : widths) {
    Matrix& part = out.emplace_back(x.rows, groups * width);
    for (int64_t r = 0; r < x.rows; ++r)
      for (int64_t g = 0; g < groups; ++g) std::copy_n(x.row(r) + g * stride + offset, width, part.row(r) + g * width);
    offset += width;
  }
  return out;
}

Matrix gated_delta_net(DeltaNetInputs inputs, const DeltaNetWeights& weights, const DeltaNetShape& s,
                       const Batch& batch) {
  causal_convolution(inputs.qkv, weights.convolution, s.taps, batch);
  Matrix q = columns(inputs.qkv, 0, s.keys()), k = columns(inputs.qkv, s.keys(), s.keys());
  const Matrix v = columns(inputs.qkv, 2 * s.keys(), s.values());
  if (weights.normalize_keys) {
    l2_norm(q, s.key_dim, kKeyEpsilon);
    l2_norm(k, s.key_dim, kKeyEpsilon);
  }
  scale(q, static_cast<float>(1 / std::sqrt(static_cast<double>(s.key_dim))));
  for (int64_t r = 0; r < v.rows; ++r) {
    for (int64_t h = 0; h < s.value_heads; ++h) {
      const auto head = static_cast<size_t>(h);
      float& time = inputs.time.row(r)[h];
      time = std::exp(-std::exp(weights.decay_log[head]) * softplus(time + weights.time_bias[head]));
      inputs.beta.row(r)[h] = sigmoid(inputs.beta.row(r)[h]);
    }
  }
  Matrix out = delta_rule(q, k, v, inputs.time, inputs.beta, s, batch);
  rms_norm(out, weights.norm, weights.epsilon);
  activate(Activation::kSilu, inputs.gate);
  multiply_elements(out, inputs.gate);
  return out;
}

}  // namespace maxport::forward
