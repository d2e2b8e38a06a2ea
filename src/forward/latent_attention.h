// DeepSeek's latent attention once its projections are done, and the indexer of its sparse form.
#pragma once

#include <functional>
#include <span>

#include "forward/batch.h"
#include "forward/matrix.h"
#include "forward/rotary.h"

namespace maxport::forward {

struct LatentAttention {
  int64_t heads = 0;
  int64_t nope_dim = 0;  ///< of each head of queries and keys: the elements that do not turn, which come first
  int64_t rope_dim = 0;  ///< and those that do
  int64_t value_dim = 0;
  double scale = 1;     ///< multiplies every score
  double soft_cap = 0;  ///< as in AttentionOptions
};

/// True for a row that the query's row may not see.
using HiddenKeys = std::function<bool(int64_t query, int64_t key)>;

/// q is [tokens, heads * (nope + rope)], kv [tokens, heads * (nope + value)], key [tokens, rope] the turning part of
/// the keys, which all heads share; neither has turned yet. Returns [tokens, heads * value].
Matrix attend_latent(Matrix q, const Matrix& kv, Matrix key, const Batch& batch, const Rotary& rotary,
                     const LatentAttention& options, HiddenKeys hidden);

struct Indexer {
  int64_t heads = 0, head_dim = 0;
  int64_t count = 0;       ///< keys that a query may see
  bool keep_ties = false;  ///< all keys as good as the last one may be seen too, else the first of them
};

/// q is [tokens, heads * head_dim], k [tokens, head_dim], weights [tokens, heads]. A key's score is the sum over the
/// heads of weight * max(0, q k); the first elements of each head turn.
HiddenKeys select_keys(Matrix q, Matrix k, const Matrix& weights, const Batch& batch, const Rotary& rotary,
                       const Indexer& options);

/// (x - mean) / sqrt(variance + epsilon) * weight + bias over each row.
void layer_norm(Matrix& x, std::span<const float> weight, std::span<const float> bias, double epsilon);

}  // namespace maxport::forward
