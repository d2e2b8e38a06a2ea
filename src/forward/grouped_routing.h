// Choosing experts within groups, as DeepSeek's routers do.
#pragma once

#include "forward/experts.h"

namespace maxport::forward {

struct GroupedRouting {
  int64_t count = 1;        ///< experts a token
  int64_t groups = 1;       ///< of equally many experts, in order
  int64_t kept_groups = 1;  ///< only experts of this many groups are chosen
  bool best_two = false;    ///< a group ranks by the sum of its two best experts, else by its best
};

/// kInvalidArgument unless the groups fit `experts`.
Result<> check_grouped_routing(const GroupedRouting& routing, int64_t experts);

/// The experts with the largest `ranking`; their weights are those of `scores`. Of equal ones the earlier.
Choices choose_within_groups(const Matrix& ranking, const Matrix& scores, const GroupedRouting& routing);

/// Weights sum to one, each divided by the sum plus `epsilon`.
void normalize_choices(Choices& choices, float epsilon);
void scale_choices(Choices& choices, float factor);

}  // namespace maxport::forward
