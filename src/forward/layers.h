// The small layers of a decoder: norms, activations, sums. All work in place on float32 activations.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "forward/matrix.h"

namespace maxport::forward {

/// x / sqrt(mean(x^2) + epsilon) * (offset + weight), over runs of weight.size() columns: the whole row, or each head
/// of it. The columns must be a multiple of the weight's size.
void rms_norm(Matrix& x, std::span<const float> weight, double epsilon, double offset = 0);
/// The same without a weight, over runs of `width` columns.
void rms_norm(Matrix& x, int64_t width, double epsilon);
/// x / sqrt(sum(x^2) + epsilon) over runs of `width` columns.
void l2_norm(Matrix& x, int64_t width, double epsilon);

enum class Activation { kSilu, kGeluTanh, kGelu, kSigmoid };
/// By the name that transformers' and MaxText's configurations use ("silu", "swish", "gelu_pytorch_tanh", "gelu").
/// MaxText's "gelu" is the tanh form: `gelu_is_tanh`.
Result<Activation> activation_of(std::string_view name, bool gelu_is_tanh);
float activate(Activation activation, float x);
void activate(Activation activation, Matrix& x);

float sigmoid(float x);
/// log(1 + exp(x)) without overflow.
float softplus(float x);

void add(Matrix& x, const Matrix& y);
/// Adds one bias to every row.
void add_bias(Matrix& x, std::span<const float> bias);
void multiply_elements(Matrix& x, const Matrix& y);
void scale(Matrix& x, float factor);
/// cap * tanh(x / cap); nothing happens for a cap of 0.
void soft_cap(Matrix& x, double cap);
/// Columns [begin, begin + count) as a matrix of their own.
Matrix columns(const Matrix& x, int64_t begin, int64_t count);

/// Rounds to the nearest bfloat16, ties to even.
void round_to_bfloat16(std::span<float> values);

/// The softmax of each row, in place.
void softmax_rows(Matrix& x);

}  // namespace maxport::forward
