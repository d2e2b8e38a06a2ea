#include "plan/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace maxport::plan {
namespace {

using Strides = std::vector<int64_t>;

struct Given {
  int64_t offset;
  Strides extents, strides;
};

Result<Coverage> run(int64_t size, const std::vector<Given>& walks) {
  std::vector<Footprint> footprints;
  for (const Given& walk : walks) footprints.push_back({walk.offset, walk.extents, walk.strides});
  return cover(size, footprints);
}

TEST(Cover, AcceptsATransposedMatrix) { EXPECT_TRUE(run(20, {{0, {5, 4}, {1, 5}}})->complete(20)); }

TEST(Cover, AcceptsStackedLayers) {
  // [4, 3, 5] stacked on axis 1 from three matrices
  std::vector<Given> layers;
  for (int64_t layer = 0; layer < 3; ++layer) layers.push_back({layer * 5, {4, 5}, {15, 1}});
  EXPECT_TRUE(run(60, layers)->complete(60));
  layers[2].offset = 5;
  auto twice = run(60, layers);
  EXPECT_EQ(twice->overlap_at, 5);
  layers.pop_back();
  EXPECT_EQ(run(60, layers)->covered, 40);
  EXPECT_FALSE(run(60, layers)->complete(60));
}

TEST(Cover, AcceptsInterleavedHalvesAndRanges) {
  EXPECT_TRUE(run(12, {{0, {6}, {2}}, {1, {6}, {2}}})->complete(12));
  EXPECT_TRUE(run(20, {{0, {2, 3}, {10, 1}}, {3, {2, 7}, {10, 1}}})->complete(20));
  EXPECT_GE(run(20, {{0, {2, 4}, {10, 1}}, {3, {2, 7}, {10, 1}}})->overlap_at, 0);
}

TEST(Cover, SeesAWalkThatMeetsItselfOrLeaves) {
  EXPECT_GE(run(12, {{0, {3, 2}, {2, 4}}})->overlap_at, 0);
  EXPECT_GE(run(8, {{0, {2, 2}, {1, 1}}})->overlap_at, 0);
  EXPECT_TRUE(run(12, {{6, {7}, {1}}})->outside);
}

TEST(Cover, NeedsNoMemoryForHugeArrays) {
  const int64_t rows = int64_t{1} << 20, columns = int64_t{1} << 22;
  EXPECT_TRUE(run(rows * columns, {{0, {columns, rows}, {1, columns}}})->complete(rows * columns));
}

// The exact answer, element by element.
TEST(Cover, AgreesWithCountingOnRandomWalks) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    const int64_t size = 24;
    std::vector<Given> walks;
    std::vector<int> hits(static_cast<size_t>(size), 0);
    bool outside = false;
    for (size_t w = 0; w < 1 + random() % 3; ++w) {
      Given walk{static_cast<int64_t>(random() % 12), {}, {}};
      for (size_t k = 0; k < 1 + random() % 3; ++k) {
        walk.extents.push_back(static_cast<int64_t>(1 + random() % 4));
        walk.strides.push_back(static_cast<int64_t>(std::vector{1, 2, 3, 4, 6, 8, 12}[random() % 7]));
      }
      std::vector<int64_t> at(walk.extents.size(), 0);
      for (bool more = true; more;) {
        int64_t position = walk.offset;
        for (size_t i = 0; i < at.size(); ++i) position += at[i] * walk.strides[i];
        if (position >= size)
          outside = true;
        else
          ++hits[static_cast<size_t>(position)];
        more = false;
        for (size_t i = at.size(); i-- > 0;) {
          if (++at[i] < walk.extents[i]) {
            more = true;
            break;
          }
          at[i] = 0;
        }
      }
      walks.push_back(std::move(walk));
    }
    const bool overlap = std::ranges::any_of(hits, [](int n) { return n > 1; });
    const bool complete = std::ranges::all_of(hits, [](int n) { return n == 1; });
    auto got = run(size, walks);
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(got->outside, outside) << trial;
    if (outside) continue;
    ASSERT_EQ(got->overlap_at >= 0, overlap) << trial;
    ASSERT_EQ(got->complete(size), complete) << trial;
  }
}

}  // namespace
}  // namespace maxport::plan
