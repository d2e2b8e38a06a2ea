#include "tensor/shape.h"

#include <gtest/gtest.h>

namespace maxport {
namespace {

TEST(Shape, CountsAndStridesAreRowMajor) {
  EXPECT_EQ(element_count(Shape{2, 3, 4}), 24);
  EXPECT_EQ(element_count(Shape{}), 1);
  EXPECT_EQ(row_major_strides(Shape{2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(shape_text(Shape{2, 3}), "[2, 3]");
}

TEST(Box, IntersectionAndContainment) {
  const Box a{{0, 2}, {4, 4}}, b{{2, 0}, {4, 3}};
  EXPECT_EQ(intersect(a, b), (Box{{2, 2}, {2, 1}}));
  EXPECT_TRUE(intersect(a, Box{{4, 0}, {1, 9}}).empty());
  EXPECT_TRUE(contains(Shape{4, 6}, a));
  EXPECT_FALSE(contains(Shape{4, 5}, a));
  EXPECT_FALSE(contains(Shape{4, 6}, Box{{-1, 0}, {1, 1}}));
}

}  // namespace
}  // namespace maxport
