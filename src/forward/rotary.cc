#include "forward/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace maxport::forward {

std::vector<double> rotary_frequencies(double theta, int64_t dim) {
  std::vector<double> out(static_cast<size_t>(std::max<int64_t>(dim, 0) / 2));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
  return out;
}

std::vector<double> linear_scaled(std::vector<double> frequencies, double factor) {
  for (double& frequency : frequencies) frequency /= factor;
  return frequencies;
}

std::vector<double> llama3_scaled(std::vector<double> frequencies, const Llama3Scaling& s) {
  for (double& frequency : frequencies) {
    const double wave = 2 * std::numbers::pi / frequency;
    if (wave < s.original_length / s.high_frequency_factor) continue;
    if (wave > s.original_length / s.low_frequency_factor) {
      frequency /= s.factor;
      continue;
    }
    const double smooth =
        (s.original_length / wave - s.low_frequency_factor) / (s.high_frequency_factor - s.low_frequency_factor);
    frequency = (1 - smooth) * frequency / s.factor + smooth * frequency;
  }
  return frequencies;
}

std::vector<double> yarn_frequencies(double theta, int64_t dim, const YarnScaling& s) {
  // The dimension whose wave turns `rotations` times over the original length.
  const auto dimension = [&](double rotations) {
    return static_cast<double>(dim) * std::log(s.original_length / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = dimension(s.beta_fast), high = dimension(s.beta_slow);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;
  std::vector<double> out = rotary_frequencies(theta, dim);
  for (size_t i = 0; i < out.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    out[i] = out[i] / s.factor * ramp + out[i] * (1 - ramp);
  }
  return out;
}

double yarn_mscale(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

Result<> check_fits(const Rotary& rotary, int64_t head_dim) {
  const auto turning = static_cast<int64_t>(2 * rotary.frequencies.size());
  if (turning <= head_dim) return {};
  return fail(ErrorKind::kInvalidArgument,
              "rotary embeddings of {} elements do not fit heads of {}; partial_rotary_factor must be at most 1",
              turning, head_dim);
}

void apply_rotary(Matrix& x, int64_t head_dim, std::span<const int64_t> positions, const Rotary& rotary,
                  int64_t first) {
  const auto pairs = static_cast<int64_t>(rotary.frequencies.size());
  MAXPORT_CHECK(x.cols % head_dim == 0 && first + 2 * pairs <= head_dim &&
                positions.size() == static_cast<size_t>(x.rows));
  const int64_t step = rotary.pairing == Pairing::kHalves ? 1 : 2;
  const int64_t partner = rotary.pairing == Pairing::kHalves ? pairs : 1;
  std::vector<float> cosine(static_cast<size_t>(pairs)), sine(static_cast<size_t>(pairs));
  for (int64_t r = 0; r < x.rows; ++r) {
    for (size_t i = 0; i < cosine.size(); ++i) {
      // Both libraries hold the frequency and the angle in float32.
      const float angle =
          static_cast<float>(rotary.frequencies[i]) * static_cast<float>(positions[static_cast<size_t>(r)]);
      cosine[i] = static_cast<float>(std::cos(angle) * rotary.attention_factor);
      sine[i] = static_cast<float>(std::sin(angle) * rotary.attention_factor);
    }
    for (float* head = x.row(r) + first; head < x.row(r) + x.cols; head += head_dim) {
      for (int64_t i = 0; i < pairs; ++i) {
        float& a = head[i * step];
        float& b = head[i * step + partner];
        const float c = cosine[static_cast<size_t>(i)], s = sine[static_cast<size_t>(i)], old = a;
        a = old * c - b * s;
        b = b * c + old * s;
      }
    }
  }
}

}  // namespace maxport::forward
