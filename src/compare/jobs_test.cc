#include "compare/jobs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace maxport::compare {
namespace {

/// A tensor in memory that remembers the largest box that was asked for.
class MemoryWindows final : public WindowReader {
 public:
  MemoryWindows(Shape shape, Shape chunk) : shape_(std::move(shape)), chunk_(std::move(chunk)), values(static_cast<size_t>(element_count(shape_))) {
    std::iota(values.begin(), values.end(), 0.0f);
  }
  DType dtype() const override { return DType::kFloat32; }
  const Shape& shape() const override { return shape_; }
  Shape chunk_shape() const override { return chunk_; }
  Result<> read(const Box& box, MutableByteSpan out, Workspace&) const override {
    EXPECT_TRUE(contains(shape_, box));
    EXPECT_EQ(out.size(), static_cast<size_t>(element_count(box.shape)) * 4);
    if (fails) return fail(ErrorKind::kCorruptData, "broken");
    largest = std::max(largest.load(), out.size());
    const auto strides = row_major_strides(shape_), dense = row_major_strides(box.shape);
    for (int64_t i = 0; i < element_count(box.shape); ++i) {
      int64_t rest = i, at = 0;
      for (size_t axis = 0; axis < strides.size(); ++axis) {
        at += (box.origin[axis] + rest / dense[axis]) * strides[axis];
        rest %= dense[axis];
      }
      std::memcpy(out.data() + i * 4, &values[static_cast<size_t>(at)], 4);
    }
    return {};
  }

 private:
  Shape shape_, chunk_;

 public:
  std::vector<float> values;
  bool fails = false;
  mutable std::atomic<size_t> largest{0};
};

Job whole(const WindowReader& a, const WindowReader& b) {
  return {&a, true, {{Box::whole(a.shape()), &b, Box::whole(b.shape()), 0}}, 0};
}

TEST(Jobs, FindTheFirstDifferingElementWhateverTheChunks) {
  for (const Shape& chunk : {Shape{7, 5, 3}, Shape{1, 5, 1}, Shape{2, 2, 2}, Shape{7, 1, 1}}) {
    MemoryWindows a({7, 5, 3}, chunk), b({7, 5, 3}, {1, 1, 1});
    b.values[100] += 1;
    b.values[17] += 1;
    std::vector<Statistics> entries(1);
    ASSERT_TRUE(run_jobs({whole(a, b)}, {}, entries));
    EXPECT_EQ(entries[0].elements, 105u);
    EXPECT_EQ(entries[0].differing, 2u);
    EXPECT_EQ(entries[0].first, 17u) << shape_text(chunk);
  }
}

TEST(Jobs, GiveTheSameWithAnyNumberOfThreads) {
  MemoryWindows a({3000, 1000}, {100, 1000}), b({3000, 1000}, {1, 1});
  for (size_t i = 0; i < b.values.size(); i += 911) b.values[i] *= 1.0001f;
  std::vector<Statistics> one(1), many(1);
  ASSERT_TRUE(run_jobs({whole(a, b)}, {}, one));
  ASSERT_TRUE(run_jobs({whole(a, b)}, {.tolerance = 0, .threads = 5, .cancelled = {}, .bytes_done = nullptr}, many));
  EXPECT_EQ(one[0].dot, many[0].dot);
  EXPECT_EQ(one[0].sum_difference, many[0].sum_difference);
  EXPECT_EQ(one[0].first, many[0].first);
}

TEST(Jobs, ReadInWindowsNotWholeTensors) {
  MemoryWindows a({4000, 1500}, {1, 1}), b({4000, 1500}, {1, 1});
  std::vector<Statistics> entries(1);
  ASSERT_TRUE(run_jobs({whole(a, b)}, {}, entries));
  EXPECT_EQ(entries[0].elements, 6'000'000u);
  EXPECT_LE(a.largest, size_t{8} << 20);
  EXPECT_LE(b.largest, size_t{8} << 20);
}

TEST(Jobs, CompareEachLayerOfAStackWithItsOwnTensor) {
  MemoryWindows stack({6, 3, 4}, {2, 3, 4});  // three layers on axis 1
  std::vector<std::unique_ptr<MemoryWindows>> layers;
  Job job{&stack, false, {}, 1000};
  for (int64_t layer = 0; layer < 3; ++layer) {
    layers.push_back(std::make_unique<MemoryWindows>(Shape{6, 4}, Shape{6, 4}));
    for (int64_t row = 0; row < 6; ++row)
      for (int64_t column = 0; column < 4; ++column)
        layers.back()->values[static_cast<size_t>(row * 4 + column)] = stack.values[static_cast<size_t>((row * 3 + layer) * 4 + column)];
    job.parts.push_back({{{0, layer, 0}, {6, 1, 4}}, layers.back().get(), {{0, 0}, {6, 4}}, static_cast<size_t>(layer)});
  }
  layers[1]->values[2 * 4 + 3] = -1;
  std::vector<Statistics> entries(3);
  ASSERT_TRUE(run_jobs({job}, {}, entries));
  EXPECT_EQ(entries[0].differing, 0u);
  EXPECT_EQ(entries[2].differing, 0u);
  EXPECT_EQ(entries[1].differing, 1u);
  EXPECT_EQ(entries[1].elements, 24u);
  EXPECT_EQ(entries[1].first, 1000u + (2 * 3 + 1) * 4 + 3);
  EXPECT_EQ(number(DType::kFloat32, entries[1].first_a.bits.data()), -1) << "the layers are side A";
}

TEST(Jobs, StopAtWhatCannotBeRead) {
  MemoryWindows a({10, 10}, {1, 10}), b({10, 10}, {1, 1});
  b.fails = true;
  std::vector<Statistics> entries(1);
  auto status = run_jobs({whole(a, b)}, {.tolerance = 0, .threads = 3, .cancelled = {}, .bytes_done = nullptr}, entries);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), ErrorKind::kCorruptData);
}

TEST(Jobs, StopWhenAsked) {
  MemoryWindows a({10, 10}, {1, 10}), b({10, 10}, {1, 1});
  std::vector<Statistics> entries(1);
  auto status = run_jobs({whole(a, b)}, {.tolerance = 0, .threads = 1, .cancelled = [] { return true; }, .bytes_done = nullptr}, entries);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), ErrorKind::kInterrupted);
}

TEST(Jobs, TakeTensorsWithoutElementsAndScalars) {
  MemoryWindows a({0, 10}, {1, 10}), b({0, 10}, {1, 1}), c({}, {}), d({}, {});
  d.values[0] = 2;
  std::vector<Statistics> entries(2);
  Job scalars = whole(c, d);
  scalars.parts[0].entry = 1;
  ASSERT_TRUE(run_jobs({whole(a, b), scalars}, {}, entries));
  EXPECT_EQ(entries[0].elements, 0u);
  EXPECT_EQ(entries[1].differing, 1u);
  EXPECT_EQ(entries[1].first, 0u);
}

}  // namespace
}  // namespace maxport::compare
