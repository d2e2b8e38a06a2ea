#include "tensor/strided_copy.h"

#include <gtest/gtest.h>

#include <cstring>

namespace maxport {
namespace {

TEST(StridedCopy, TransposesAMatrix) {
  const std::vector<uint16_t> source = {1, 2, 3, 4, 5, 6};
  std::vector<uint16_t> target(6);
  strided_copy({{3, 2}, {1, 3}, {2, 1}}, ElementOp::copy(DType::kUint16), std::as_bytes(std::span(source)).data(),
               std::as_writable_bytes(std::span(target)).data());
  EXPECT_EQ(target, (std::vector<uint16_t>{1, 4, 2, 5, 3, 6}));
}

TEST(StridedCopy, DoesNothingForAnEmptyWalkAndOneElementForAScalar) {
  const uint8_t source = 7;
  uint8_t target = 0;
  const auto* in = reinterpret_cast<const std::byte*>(&source);
  auto* out = reinterpret_cast<std::byte*>(&target);
  strided_copy({{3, 0}, {1, 3}, {2, 1}}, ElementOp::copy(DType::kUint8), in, out);
  EXPECT_EQ(target, 0);
  strided_copy({}, ElementOp::copy(DType::kUint8), in, out);
  EXPECT_EQ(target, 7);
}

}  // namespace
}  // namespace maxport
