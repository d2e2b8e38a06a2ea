// Linear attention by the gated delta rule: a causal convolution over projected queries, keys and values, then a state
// a head that decays, forgets along each key what it held there, and learns the value.
#pragma once

#include <span>
#include <vector>

#include "forward/batch.h"
#include "forward/matrix.h"

namespace maxport::forward {

struct DeltaNetShape {
  int64_t key_heads = 0, value_heads = 0;  ///< value head h uses key head h / (value_heads / key_heads)
  int64_t key_dim = 0, value_dim = 0;      ///< of one head
  int64_t taps = 0;                        ///< of the convolution

  int64_t keys() const { return key_heads * key_dim; }
  int64_t values() const { return value_heads * value_dim; }
  int64_t channels() const { return 2 * keys() + values(); }
};

struct DeltaNetInputs {
  Matrix qkv;   ///< [tokens, channels]: all queries, all keys, all values; before the convolution
  Matrix gate;  ///< [tokens, values]
  Matrix beta;  ///< [tokens, value_heads], before the sigmoid
  Matrix time;  ///< [tokens, value_heads], before bias and softplus
};

struct DeltaNetWeights {
  std::vector<float> convolution;  ///< [channels, taps]
  std::vector<float> decay_log;    ///< [value_heads]
  std::vector<float> time_bias;    ///< [value_heads]
  std::vector<float> norm;         ///< [value_dim]
  double epsilon = 1e-6;           ///< of the norm
  bool normalize_keys = true;      ///< queries and keys get length one
};

/// Returns [tokens, values], ready for the output projection.
Matrix gated_delta_net(DeltaNetInputs inputs, const DeltaNetWeights& weights, const DeltaNetShape& shape,
                       const Batch& batch);

/// y[t] = silu(sum over j of kernel[j] x[t - taps + 1 + j]) for each channel, within each sequence.
void causal_convolution(Matrix& x, std::span<const float> kernel, int64_t taps, const Batch& batch);

/// Cuts columns that are laid out as `groups` groups of parts of these widths into one matrix a part, which has that
/// part of all groups, one after another.
std::vector<Matrix> split_groups(const Matrix& x, int64_t groups, std::span<const int64_t> widths);

}  // namespace maxport::forward
