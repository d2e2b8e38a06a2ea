#include "zarr/byte_planes.h"

#include <gtest/gtest.h>

#include "tensor/simd_targets_for_test.h"
#include "zarr/testing.h"

namespace maxport::zarr {
namespace {

class BytePlanes : public testing::TestWithParam<size_t> {};

TEST_P(BytePlanes, HoldEachByteAndAreJoinedAgain) {
  const size_t size = GetParam();
  ASSERT_TRUE(has_byte_planes(size));
  for_each_simd_target([&] {
    for (size_t elements = 0; elements <= 300; ++elements) {
      const Bytes in = random_bytes(elements * size);
      Bytes planes(in.size()), back(in.size());
      split_bytes(size, in, planes, elements);
      for (size_t i = 0; i < elements; ++i)
        for (size_t byte = 0; byte < size; ++byte)
          ASSERT_EQ(in[i * size + byte], planes[byte * elements + i]) << elements << " elements, " << i << " byte " << byte;
      join_bytes(size, planes, back);
      ASSERT_EQ(in, back) << elements << " elements";
    }
  });
}

TEST_P(BytePlanes, AreAsFarApartAsAsked) {
  const size_t size = GetParam(), elements = 100, stride = 107;
  const Bytes in = random_bytes(elements * size);
  Bytes planes(stride * size, std::byte{7});
  split_bytes(size, in, planes, stride);
  for (size_t i = 0; i < stride; ++i)
    for (size_t byte = 0; byte < size; ++byte)
      ASSERT_EQ(i < elements ? in[i * size + byte] : std::byte{7}, planes[byte * stride + i]) << i << " byte " << byte;
}

INSTANTIATE_TEST_SUITE_P(Sizes, BytePlanes, testing::Values(1, 2, 4, 8));

TEST(BytePlanes, HaveNoOtherSizes) {
  for (size_t size : {0, 3, 5, 16}) EXPECT_FALSE(has_byte_planes(size)) << size;
}

}  // namespace
}  // namespace maxport::zarr
