#include "forward/grouped_routing.h"

#include <algorithm>
#include <limits>
#include <span>

namespace maxport::forward {
namespace {

float rank_of_group(std::span<const float> experts, bool best_two) {
  float best = -std::numeric_limits<float>::infinity(), second = best;
  for (const float value : experts) {
    second = std::max(second, std::min(best, value));
    best = std::max(best, value);
  }
  return best_two ? best + second : best;
}

}  // namespace

Result<> check_grouped_routing(const GroupedRouting& routing, int64_t experts) {
  const int64_t size = routing.groups > 0 && experts % routing.groups == 0 ? experts / routing.groups : 0;
  if (size < (routing.best_two ? 2 : 1) || routing.kept_groups < 1 || routing.kept_groups > routing.groups ||
      routing.count < 1 || routing.count > routing.kept_groups * size)
    return fail(ErrorKind::kInvalidArgument,
                "{} experts a token of {} groups cannot be chosen from {} experts in {} groups; the settings are wrong",
                routing.count, routing.kept_groups, experts, routing.groups);
  return {};
}

Choices choose_within_groups(const Matrix& ranking, const Matrix& scores, const GroupedRouting& routing) {
  const int64_t size = ranking.cols / routing.groups;
  Matrix groups(ranking.rows, routing.groups);
  for (int64_t r = 0; r < ranking.rows; ++r)
    for (int64_t g = 0; g < routing.groups; ++g)
      groups.row(r)[g] = rank_of_group({ranking.row(r) + g * size, static_cast<size_t>(size)}, routing.best_two);
  const Choices kept = top_choices(groups, routing.kept_groups);
  Matrix allowed(ranking.rows, ranking.cols);
  std::ranges::fill(allowed.data, -std::numeric_limits<float>::infinity());
  for (int64_t r = 0; r < ranking.rows; ++r)
    for (const Choice& group : kept[static_cast<size_t>(r)])
      std::copy_n(ranking.row(r) + group.expert * size, size, allowed.row(r) + group.expert * size);
  Choices out = top_choices(allowed, routing.count);
  for (int64_t r = 0; r < ranking.rows; ++r)
    for (Choice& choice : out[static_cast<size_t>(r)]) choice.weight = scores.row(r)[choice.expert];
  return out;
}

void normalize_choices(Choices& choices, float epsilon) {
  for (auto& row : choices) {
    float sum = epsilon;
    for (const Choice& choice : row) sum += choice.weight;
    for (Choice& choice : row) choice.weight /= sum;
  }
}

void scale_choices(Choices& choices, float factor) {
  for (auto& row : choices)
    for (Choice& choice : row) choice.weight *= factor;
}

}  // namespace maxport::forward
