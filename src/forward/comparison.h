// How near two models' logits are: the figures that MaxText's checker of forward passes prints, and a few more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "forward/matrix.h"

namespace maxport::forward {

struct Comparison {
  int64_t tokens = 0, vocabulary = 0;  ///< what was compared: all rows, the columns that both have
  double max_abs_difference = 0;
  int64_t max_row = 0, max_column = 0;  ///< where that is
  double largest_reference = 0;         ///< largest |logit| of the reference
  double cosine = 0;                    ///< of all logits as one vector
  int64_t argmax_agreements = 0;        ///< rows whose largest logit is at the same place
  std::vector<double> kl;               ///< D_KL(P_reference || P_model) of each row, in nats
  double mean_kl = 0, max_kl = 0;
  int64_t max_kl_row = 0;
  int64_t not_finite = 0;  ///< NaN and infinities on either side; then no figure above means anything

  double argmax_agreement() const {
    return tokens == 0 ? 0 : static_cast<double>(argmax_agreements) / static_cast<double>(tokens);
  }
  /// True when every row's divergence is below the limit, as MaxText's checker asks.
  bool within(double max_kl_div) const { return not_finite == 0 && max_kl < max_kl_div; }
};

/// Row by row. Fails with kInvalidArgument for different numbers
/// of rows, or nothing to compare. A vocabulary may be padded on one side.
Result<Comparison> compare_logits(const Matrix& model, const Matrix& reference);

struct TokenScore {
  int64_t id;
  float score;
};

/// The `count` largest logits, largest first; of equal ones the smaller id.
std::vector<TokenScore> top_tokens(std::span<const float> logits, int64_t count);

struct TopAgreement {
  int64_t compared = 0;       ///< length of the shorter list
  int64_t overlap = 0;        ///< ids in both
  double jaccard = 0;         ///< overlap / ids in either
  double rank_agreement = 0;  ///< percent of ranks with the same id
};
TopAgreement compare_top_tokens(std::span<const TokenScore> model, std::span<const TokenScore> reference);

}  // namespace maxport::forward
