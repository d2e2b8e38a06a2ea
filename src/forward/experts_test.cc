#include "forward/experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "forward/layers.h"

namespace maxport::forward {
namespace {

using ::testing::ElementsAre;

Matrix logits() {
  Matrix out(1, 4);
  out.data = {std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(3.0f)};  // softmax .1 .4 .2 .3
  return out;
}

std::vector<int64_t> ids(const Choices& choices) {
  std::vector<int64_t> out;
  for (const Choice& choice : choices[0]) out.push_back(choice.expert);
  return out;
}

TEST(Routing, ChoosesTheLargestAndOfEqualOnesTheEarlier) {
  EXPECT_THAT(ids(top_choices(logits(), 3)), ElementsAre(1, 3, 2));
  EXPECT_THAT(ids(top_choices(Matrix(1, 4), 2)), ElementsAre(0, 1));
}

TEST(Routing, WeighsBySoftmaxBeforeOrAfterTheChoice) {
  const Choices plain = softmax_then_top(logits(), 2, false), normalized = softmax_then_top(logits(), 2, true);
  EXPECT_NEAR(plain[0][0].weight, 0.4, 1e-6);
  EXPECT_NEAR(plain[0][1].weight, 0.3, 1e-6);
  EXPECT_NEAR(normalized[0][0].weight, 4.0 / 7, 1e-6);
  // After the choice is the same as normalized.
  EXPECT_NEAR(top_then_softmax(logits(), 2)[0][1].weight, 3.0 / 7, 1e-6);
}

TEST(Mixture, SumsWeightedAnswersAndAsksOnlyChosenExperts) {
  Matrix x(2, 1);
  x.data = {1, 10};
  const Choices choices = {{{2, 0.5f}, {0, 0.25f}}, {{2, 1.0f}}};
  std::vector<int64_t> asked;
  auto out = mix_experts(x, choices, 4, [&](int64_t expert, const Matrix& rows) -> Result<Matrix> {
    asked.push_back(expert);
    EXPECT_EQ(rows.rows, expert == 2 ? 2 : 1);
    Matrix answer = rows;
    scale(answer, static_cast<float>(expert + 1));
    return answer;
  });
  ASSERT_TRUE(out);
  EXPECT_THAT(asked, ElementsAre(0, 2));
  EXPECT_THAT(out->data, ElementsAre(0.5f * 3 + 0.25f * 1, 30));
}

TEST(Mixture, PassesAnExpertsFailureOn) {
  const auto out = mix_experts(Matrix(1, 1), {{{0, 1.0f}}}, 1, [](int64_t, const Matrix&) -> Result<Matrix> {
    return fail(ErrorKind::kNotFound, "no such expert");
  });
  EXPECT_EQ(out.error().kind(), ErrorKind::kNotFound);
}

}  // namespace
}  // namespace maxport::forward
