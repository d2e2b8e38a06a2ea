#include "forward/grouped_routing.h"

#include <gtest/gtest.h>

namespace maxport::forward {
namespace {

Matrix row(std::vector<float> values) {
  Matrix out(1, static_cast<int64_t>(values.size()));
  out.data = std::move(values);
  return out;
}

std::vector<int64_t> chosen(const Choices& choices) {
  std::vector<int64_t> out;
  for (const Choice& choice : choices[0]) out.push_back(choice.expert);
  return out;
}

TEST(GroupedRouting, ChoosesOnlyWithinTheBestGroups) {
  // Sums of the two best: 10, 9, 8. Best ones: 9, 5, 7.
  const Matrix ranking = row({9, 1, 0, 5, 4, 4, 7, 1, 1});
  EXPECT_EQ(chosen(choose_within_groups(ranking, ranking, {4, 3, 2, true})), (std::vector<int64_t>{0, 3, 4, 5}));
  EXPECT_EQ(chosen(choose_within_groups(ranking, ranking, {3, 3, 2, false})), (std::vector<int64_t>{0, 6, 1}));
  EXPECT_EQ(chosen(choose_within_groups(ranking, ranking, {3, 1, 1, false})), (std::vector<int64_t>{0, 6, 3}));
}

TEST(GroupedRouting, RanksByOneMatrixAndWeighsByAnother) {
  Choices choices = choose_within_groups(row({1, 3, 2, 0}), row({10, 20, 30, 40}), {2, 1, 1, false});
  EXPECT_EQ(choices[0][0].weight, 20);
  EXPECT_EQ(choices[0][1].weight, 30);
  normalize_choices(choices, 0);
  scale_choices(choices, 5);
  EXPECT_FLOAT_EQ(choices[0][0].weight, 2);
  EXPECT_FLOAT_EQ(choices[0][1].weight, 3);
}

TEST(GroupedRouting, RefusesGroupsThatDoNotFit) {
  EXPECT_TRUE(check_grouped_routing({4, 4, 2, true}, 8));
  for (const GroupedRouting& bad :
       {GroupedRouting{1, 3, 1, false}, GroupedRouting{5, 4, 2, false}, GroupedRouting{1, 8, 1, true},
        GroupedRouting{1, 4, 5, false}, GroupedRouting{0, 1, 1, false}, GroupedRouting{1, 0, 0, false}})
    EXPECT_EQ(check_grouped_routing(bad, 8).error().kind(), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace maxport::forward
