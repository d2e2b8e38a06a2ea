#include "models/pattern.h"

#include <gtest/gtest.h>

namespace maxport::models {
namespace {

Dimensions sizes() {
  Dimensions d;
  for (auto [name, size] : {std::pair{"heads", 4},
                            {"dim", 6},
                            {"half", 3},
                            {"emb", 5},
                            {"mlp", 7},
                            {"vocab", 10},
                            {"padded_vocab", 16},
                            {"two_mlp", 14},
                            {"k", 3},
                            {"rows", 20}})
    d.set(name, size);
  return d;
}

/// Element numbers on both sides for one choice of the indices, in the order of `names`.
std::pair<int64_t, int64_t> at(const Pattern& pattern, const std::vector<int64_t>& index) {
  auto number = [&](const TensorForm& form) {
    const auto strides = row_major_strides(form.shape());
    int64_t element = 0;
    for (size_t axis = 0; axis < form.axes.size(); ++axis) {
      int64_t position = form.axes[axis].offset;
      for (const Term& term : form.axes[axis].terms) position += term.stride * index[static_cast<size_t>(term.index)];
      EXPECT_LT(position, form.axes[axis].extent);
      element += position * strides[axis];
    }
    return element;
  };
  return {number(pattern.huggingface), number(pattern.maxtext)};
}

TEST(Pattern, SplitsAndTransposes) {
  auto pattern = parse_pattern("(heads dim) emb -> emb heads dim", sizes());
  ASSERT_TRUE(pattern) << pattern.error().message();
  EXPECT_EQ(pattern->huggingface.shape(), (Shape{24, 5}));
  EXPECT_EQ(pattern->maxtext.shape(), (Shape{5, 4, 6}));
  // heads=2, dim=3, emb=4
  EXPECT_EQ(at(*pattern, {2, 3, 4}), (std::pair<int64_t, int64_t>{(2 * 6 + 3) * 5 + 4, (4 * 4 + 2) * 6 + 3}));
}

TEST(Pattern, InterleavesRotaryHalves) {
  auto pattern = parse_pattern("(heads 2 half) emb -> emb heads (half 2)", sizes());
  ASSERT_TRUE(pattern) << pattern.error().message();
  // M[e, h, 2j + s] = X[h*d + s*d/2 + j, e], hooks.md 3.2; indices heads, 2, half, emb
  EXPECT_EQ(at(*pattern, {1, 1, 2, 3}), (std::pair<int64_t, int64_t>{(6 + 3 + 2) * 5 + 3, (3 * 4 + 1) * 6 + 5}));
}

TEST(Pattern, SelectsPositionsAndRanges) {
  auto gate = parse_pattern("(@1/2 mlp) emb -> emb mlp", sizes());
  ASSERT_TRUE(gate) << gate.error().message();
  EXPECT_EQ(gate->huggingface.shape(), (Shape{14, 5}));
  EXPECT_EQ(at(*gate, {2, 3}), (std::pair<int64_t, int64_t>{(7 + 2) * 5 + 3, 3 * 7 + 2}));

  auto up = parse_pattern("emb (mlp @1/2) -> emb mlp", sizes());
  ASSERT_TRUE(up) << up.error().message();
  EXPECT_EQ(at(*up, {4, 2}), (std::pair<int64_t, int64_t>{4 * 14 + 5, 4 * 7 + 2}));

  auto padded = parse_pattern("vocab emb -> vocab@0/padded_vocab emb", sizes());
  ASSERT_TRUE(padded) << padded.error().message();
  EXPECT_EQ(padded->maxtext.shape(), (Shape{16, 5}));

  auto rows = parse_pattern("(heads half)@k/rows -> heads (half@2/mlp)", sizes());
  ASSERT_TRUE(rows) << rows.error().message();
  EXPECT_EQ(rows->huggingface.shape(), (Shape{20}));
  EXPECT_EQ(at(*rows, {1, 2}), (std::pair<int64_t, int64_t>{3 + 3 + 2, 7 + 2 + 2}));
}

TEST(Pattern, KeepsUnitAxes) {
  auto pattern = parse_pattern("heads 1 dim -> dim 1 heads", sizes());
  ASSERT_TRUE(pattern);
  EXPECT_EQ(pattern->maxtext.shape(), (Shape{6, 1, 4}));
  EXPECT_EQ(pattern->names, (std::vector<std::string>{"heads", "dim"}));
}

TEST(Pattern, RefusesWhatMakesNoSense) {
  for (const char* text : {"heads emb", "heads nobody -> heads", "(heads emb -> emb heads", "heads heads -> heads",
                           "heads@9/10 -> heads", "heads ! -> heads", "heads@2 -> heads"})
    EXPECT_FALSE(parse_pattern(text, sizes())) << text;
}

}  // namespace
}  // namespace maxport::models
