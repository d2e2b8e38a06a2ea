// Mixtures of experts: who answers for a token, and the sum of the answers.
#pragma once

#include <functional>
#include <vector>

#include "base/error.h"
#include "forward/matrix.h"

namespace maxport::forward {

struct Choice {
  int64_t expert;
  float weight;
};
/// One list a token.
using Choices = std::vector<std::vector<Choice>>;

/// The `count` largest of each row, largest first; of equal ones the earlier.
Choices top_choices(const Matrix& scores, int64_t count);
/// Softmax over all experts, then the largest `count`; `normalize` makes their weights sum to one.
Choices softmax_then_top(Matrix logits, int64_t count, bool normalize);
/// The largest `count`, then a softmax over those.
Choices top_then_softmax(const Matrix& logits, int64_t count);

/// The sum over the choices of weight * expert(rows). `expert` gets the rows of all tokens that chose it and returns as
/// many; an expert that nobody chose is not called.
Result<Matrix> mix_experts(const Matrix& x, const Choices& choices, int64_t experts,
                           const std::function<Result<Matrix>(int64_t expert, const Matrix& rows)>& expert);

}  // namespace maxport::forward
