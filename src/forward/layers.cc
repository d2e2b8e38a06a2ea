#include "forward/layers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/cast.h"

namespace maxport::forward {
namespace {

// Calls visit(run) for each run of `width` columns.
template <class Visit>
void for_runs(Matrix& x, int64_t width, Visit visit) {
  MAXPORT_CHECK(width > 0 && x.cols % width == 0);
  for (size_t begin = 0; begin < x.data.size(); begin += static_cast<size_t>(width))
    visit(std::span(x.data).subspan(begin, static_cast<size_t>(width)));
}

double sum_of_squares(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

}  // namespace

void rms_norm(Matrix& x, std::span<const float> weight, double epsilon, double offset) {
  const auto width = static_cast<int64_t>(weight.size());
  for_runs(x, width, [&](std::span<float> run) {
    const double factor = 1 / std::sqrt(sum_of_squares(run) / static_cast<double>(width) + epsilon);
    for (size_t i = 0; i < run.size(); ++i)
      run[i] = static_cast<float>(run[i] * factor) * (weight[i] + static_cast<float>(offset));
  });
}

void rms_norm(Matrix& x, int64_t width, double epsilon) {
  for_runs(x, width, [&](std::span<float> run) {
    const double factor = 1 / std::sqrt(sum_of_squares(run) / static_cast<double>(width) + epsilon);
    for (float& value : run) value = static_cast<float>(value * factor);
  });
}

void l2_norm(Matrix& x, int64_t width, double epsilon) {
  for_runs(x, width, [&](std::span<float> run) {
    const double factor = 1 / std::sqrt(sum_of_squares(run) + epsilon);
    for (float& value : run) value = static_cast<float>(value * factor);
  });
}

Result<Activation> activation_of(std::string_view name, bool gelu_is_tanh) {
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::kGeluTanh;
  if (name == "sigmoid") return Activation::kSigmoid;
  if (name == "gelu") return gelu_is_tanh ? Activation::kGeluTanh : Activation::kGelu;
  return fail(ErrorKind::kUnsupported,
              "no forward pass knows the activation \"{}\"; known are silu, sigmoid, gelu and gelu_pytorch_tanh",
              printable(name));
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::kSilu:
      return x * sigmoid(x);
    case Activation::kSigmoid:
      return sigmoid(x);
    case Activation::kGelu:
      return 0.5f * x * (1 + std::erf(x * std::numbers::sqrt2_v<float> / 2));
    case Activation::kGeluTanh: {
      const float root = std::sqrt(2 * std::numbers::inv_pi_v<float>);
      return 0.5f * x * (1 + std::tanh(root * (x + 0.044715f * x * x * x)));
    }
  }
  return x;
}

void activate(Activation activation, Matrix& x) {
  for (float& value : x.data) value = activate(activation, value);
}

void add(Matrix& x, const Matrix& y) {
  MAXPORT_CHECK(x.rows == y.rows && x.cols == y.cols);
  for (size_t i = 0; i < x.data.size(); ++i) x.data[i] += y.data[i];
}

void add_bias(Matrix& x, std::span<const float> bias) {
  MAXPORT_CHECK(static_cast<size_t>(x.cols) == bias.size());
  for (int64_t r = 0; r < x.rows; ++r)
    for (size_t c = 0; c < bias.size(); ++c) x.row(r)[c] += bias[c];
}

void multiply_elements(Matrix& x, const Matrix& y) {
  MAXPORT_CHECK(x.rows == y.rows && x.cols == y.cols);
  for (size_t i = 0; i < x.data.size(); ++i) x.data[i] *= y.data[i];
}

void scale(Matrix& x, float factor) {
  for (float& value : x.data) value *= factor;
}

void soft_cap(Matrix& x, double cap) {
  if (cap == 0) return;
  const auto limit = static_cast<float>(cap);
  for (float& value : x.data) value = limit * std::tanh(value / limit);
}

Matrix columns(const Matrix& x, int64_t begin, int64_t count) {
  MAXPORT_CHECK(begin >= 0 && count >= 0 && begin + count <= x.cols);
  Matrix out(x.rows, count);
  for (int64_t r = 0; r < x.rows; ++r) std::copy_n(x.row(r) + begin, count, out.row(r));
  return out;
}

void round_to_bfloat16(std::span<float> values) {
  std::vector<std::byte> rounded(values.size() * 2);
  cast(DType::kFloat32, std::as_bytes(values), DType::kBfloat16, rounded);
  cast(DType::kBfloat16, rounded, DType::kFloat32, std::as_writable_bytes(values));
}

void softmax_rows(Matrix& x) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const std::span<float> row(x.row(r), static_cast<size_t>(x.cols));
    const float top = *std::ranges::max_element(row);
    double sum = 0;
    for (float& value : row) sum += value = std::exp(value - top);
    for (float& value : row) value = static_cast<float>(value / sum);
  }
}

}  // namespace maxport::forward
