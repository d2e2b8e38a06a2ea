// Causal attention of many heads, with the variations that decoders have.
#pragma once

#include <functional>
#include <span>

#include "forward/batch.h"
#include "forward/matrix.h"

namespace maxport::forward {

struct AttentionOptions {
  int64_t heads = 0, kv_heads = 0;
  int64_t key_dim = 0;    ///< of one head of queries and keys
  int64_t value_dim = 0;  ///< of one head of values
  double scale = 1;       ///< multiplies every score
  double soft_cap = 0;    ///< scores become cap tanh(score / cap); 0: they stay
  int64_t window = 0;     ///< a query sees this many positions, its own included; 0: all before it
  /// One a head, or none: joins the softmax as a score without a value.
  std::span<const float> sinks = {};
  /// Further positions that a query may not see, by rows of the batch; null: none.
  std::function<bool(int64_t query, int64_t key)> hidden = {};
};

/// q is [tokens, heads * key_dim], k [tokens, kv_heads * key_dim], v [tokens, kv_heads * value_dim]; query head h uses
/// key head h / (heads / kv_heads). Returns [tokens, heads * value_dim]. Sequences do not see one another.
Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v, const Batch& batch, const AttentionOptions& options);

}  // namespace maxport::forward
