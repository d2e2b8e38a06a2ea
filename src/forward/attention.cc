#include "forward/attention.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "forward/layers.h"
#include "forward/matmul.h"

namespace maxport::forward {
namespace {

// Turns scores [length, length] of one head into probabilities; what may not be seen becomes 0.
void probabilities(Matrix& scores, int64_t begin, const AttentionOptions& o, const float* sink) {
  for (int64_t q = 0; q < scores.rows; ++q) {
    float* row = scores.row(q);
    const int64_t first = o.window > 0 ? std::max<int64_t>(0, q - o.window + 1) : 0;
    const auto seen = [&](int64_t k) { return !o.hidden || !o.hidden(begin + q, begin + k); };
    float top = sink != nullptr ? *sink : -INFINITY;
    for (int64_t k = first; k <= q; ++k)
      if (seen(k)) top = std::max(top, row[k]);
    double sum = sink != nullptr ? std::exp(*sink - top) : 0.0;
    for (int64_t k = 0; k < scores.cols; ++k) {
      row[k] = k >= first && k <= q && seen(k) ? std::exp(row[k] - top) : 0.0f;
      sum += row[k];
    }
    for (int64_t k = first; k <= q; ++k) row[k] = static_cast<float>(row[k] / sum);
  }
}

ConstView part(const Matrix& m, const Batch::Sequence& s, int64_t column, int64_t width) {
  return {m.row(s.begin) + column, s.length, width, m.cols};
}

}  // namespace

Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v, const Batch& batch, const AttentionOptions& o) {
  MAXPORT_CHECK(o.kv_heads > 0 && o.heads % o.kv_heads == 0);
  MAXPORT_CHECK(q.cols == o.heads * o.key_dim && k.cols == o.kv_heads * o.key_dim &&
                v.cols == o.kv_heads * o.value_dim);
  Matrix out(q.rows, o.heads * o.value_dim);
  const int64_t group = o.heads / o.kv_heads;
  for (const Batch::Sequence& s : batch.sequences) {
    for (int64_t head = 0; head < o.heads; ++head) {
      Matrix scores(s.length, s.length);
      multiply_transposed(view(scores), part(q, s, head * o.key_dim, o.key_dim),
                          part(k, s, head / group * o.key_dim, o.key_dim));
      scale(scores, static_cast<float>(o.scale));
      soft_cap(scores, o.soft_cap);
      probabilities(scores, s.begin, o, o.sinks.empty() ? nullptr : &o.sinks[static_cast<size_t>(head)]);
      multiply({out.row(s.begin) + head * o.value_dim, s.length, o.value_dim, out.cols}, view(std::as_const(scores)),
               part(v, s, head / group * o.value_dim, o.value_dim));
    }
  }
  return out;
}

}  // namespace maxport::forward
