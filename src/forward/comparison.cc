#include "forward/comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace maxport::forward {
namespace {

/// log(sum(exp(row)))
double log_sum_exp(std::span<const float> row) {
  const double top = *std::ranges::max_element(row);
  double sum = 0;
  for (const float value : row) sum += std::exp(value - top);
  return top + std::log(sum);
}

double divergence(std::span<const float> model, std::span<const float> reference) {
  const double model_norm = log_sum_exp(model), reference_norm = log_sum_exp(reference);
  double sum = 0;
  for (size_t i = 0; i < model.size(); ++i) {
    const double log_p = reference[i] - reference_norm, log_q = model[i] - model_norm;
    sum += std::exp(log_p) * (log_p - log_q);
  }
  return std::max(sum, 0.0);  // rounding may leave a little less than nothing
}

}  // namespace

Result<Comparison> compare_logits(const Matrix& model, const Matrix& reference) {
  Comparison out;
  out.tokens = reference.rows;
  out.vocabulary = std::min(model.cols, reference.cols);
  if (model.rows != reference.rows)
    return fail(ErrorKind::kInvalidArgument, "logits of {} tokens cannot be compared with logits of {}", model.rows,
                reference.rows);
  if (out.tokens == 0 || out.vocabulary == 0)
    return fail(ErrorKind::kInvalidArgument, "there are no logits to compare");
  double dot = 0, model_squares = 0, reference_squares = 0;
  for (int64_t r = 0; r < out.tokens; ++r) {
    const std::span a(model.row(r), static_cast<size_t>(out.vocabulary)),
        b(reference.row(r), static_cast<size_t>(out.vocabulary));
    for (size_t i = 0; i < a.size(); ++i) {
      if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
        ++out.not_finite;
        continue;
      }
      const double x = a[i], y = b[i];
      dot += x * y;
      model_squares += x * x;
      reference_squares += y * y;
      out.largest_reference = std::max(out.largest_reference, std::abs(y));
      if (std::abs(x - y) > out.max_abs_difference) {
        out.max_abs_difference = std::abs(x - y);
        out.max_row = r;
        out.max_column = static_cast<int64_t>(i);
      }
    }
    if (std::ranges::max_element(a) - a.begin() == std::ranges::max_element(b) - b.begin()) ++out.argmax_agreements;
    const double kl = divergence(a, b);
    out.kl.push_back(kl);
    out.mean_kl += kl / static_cast<double>(out.tokens);
    if (kl > out.max_kl) {
      out.max_kl = kl;
      out.max_kl_row = r;
    }
  }
  const double lengths = std::sqrt(model_squares) * std::sqrt(reference_squares);
  out.cosine = lengths > 0 ? dot / lengths : (model_squares == reference_squares ? 1 : 0);
  return out;
}

std::vector<TokenScore> top_tokens(std::span<const float> logits, int64_t count) {
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto wanted = std::min(static_cast<size_t>(std::max<int64_t>(count, 0)), order.size());
  const auto value = [&](int64_t i) { return logits[static_cast<size_t>(i)]; };
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(wanted), order.end(),
                    [&](int64_t a, int64_t b) {
                      // NaN last, so that the order stays one.
                      const bool a_ok = !std::isnan(value(a)), b_ok = !std::isnan(value(b));
                      if (a_ok != b_ok) return a_ok;
                      return a_ok && value(a) != value(b) ? value(a) > value(b) : a < b;
                    });
  std::vector<TokenScore> out;
  for (size_t i = 0; i < wanted; ++i) out.push_back({order[i], value(order[i])});
  return out;
}

TopAgreement compare_top_tokens(std::span<const TokenScore> model, std::span<const TokenScore> reference) {
  TopAgreement out;
  out.compared = static_cast<int64_t>(std::min(model.size(), reference.size()));
  for (const TokenScore& token : model)
    out.overlap += std::ranges::any_of(reference, [&](const TokenScore& other) { return other.id == token.id; });
  const auto either = static_cast<double>(model.size() + reference.size()) - static_cast<double>(out.overlap);
  if (either > 0) out.jaccard = static_cast<double>(out.overlap) / either;
  int64_t same = 0;
  for (size_t i = 0; i < static_cast<size_t>(out.compared); ++i) same += model[i].id == reference[i].id;
  if (out.compared > 0) out.rank_agreement = 100 * static_cast<double>(same) / static_cast<double>(out.compared);
  return out;
}

}  // namespace maxport::forward
