#include "forward/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "forward/layers.h"

namespace maxport::forward {

Choices top_choices(const Matrix& scores, int64_t count) {
  MAXPORT_CHECK(count >= 0 && count <= scores.cols);
  Choices out(static_cast<size_t>(scores.rows));
  std::vector<int64_t> order(static_cast<size_t>(scores.cols));
  for (int64_t r = 0; r < scores.rows; ++r) {
    const float* row = scores.row(r);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](int64_t a, int64_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    for (int64_t i = 0; i < count; ++i) {
      const int64_t expert = order[static_cast<size_t>(i)];
      out[static_cast<size_t>(r)].push_back({expert, row[expert]});
    }
  }
  return out;
}

Choices softmax_then_top(Matrix logits, int64_t count, bool normalize) {
  softmax_rows(logits);
  Choices out = top_choices(logits, count);
  if (!normalize) return out;
  for (auto& choices : out) {
    float sum = 0;
    for (const Choice& choice : choices) sum += choice.weight;
    for (Choice& choice : choices) choice.weight /= sum;
  }
  return out;
}

Choices top_then_softmax(const Matrix& logits, int64_t count) {
  Choices out = top_choices(logits, count);
  for (auto& choices : out) {
    float sum = 0;
    const float top = choices.empty() ? 0 : choices.front().weight;
    for (Choice& choice : choices) sum += choice.weight = std::exp(choice.weight - top);
    for (Choice& choice : choices) choice.weight /= sum;
  }
  return out;
}

Result<Matrix> mix_experts(const Matrix& x, const Choices& choices, int64_t experts,
                           const std::function<Result<Matrix>(int64_t, const Matrix&)>& expert) {
  Matrix out(x.rows, x.cols);
  for (int64_t e = 0; e < experts; ++e) {
    std::vector<std::pair<int64_t, float>> askers;  // row, weight
    for (int64_t r = 0; r < x.rows; ++r)
      for (const Choice& choice : choices[static_cast<size_t>(r)])
        if (choice.expert == e) askers.emplace_back(r, choice.weight);
    if (askers.empty()) continue;
    Matrix rows(static_cast<int64_t>(askers.size()), x.cols);
    for (size_t i = 0; i < askers.size(); ++i)
      std::copy_n(x.row(askers[i].first), x.cols, rows.row(static_cast<int64_t>(i)));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix answer, expert(e, rows));
    MAXPORT_CHECK(answer.rows == rows.rows && answer.cols == x.cols);
    for (size_t i = 0; i < askers.size(); ++i) {
      float* target = out.row(askers[i].first);
      const float* from = answer.row(static_cast<int64_t>(i));
      for (int64_t c = 0; c < x.cols; ++c) target[c] += askers[i].second * from[c];
    }
  }
  return out;
}

}  // namespace maxport::forward
