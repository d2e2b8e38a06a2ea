#include "tensor/element_op.h"

#include <gtest/gtest.h>

#include <cstring>

namespace maxport {
namespace {

TEST(ElementOp, MultipliesInFloat32AndRoundsOnce) {
  const ElementOp op{DType::kBfloat16, DType::kBfloat16, ElementOp::Kind::kMultiply, 0.088388346f, DType::kBfloat16};
  const uint16_t one = 0x3F80;
  uint16_t out = 0;
  apply(op, std::as_bytes(std::span(&one, 1)), std::as_writable_bytes(std::span(&out, 1)));
  EXPECT_EQ(out, 0x3DB5);
}

}  // namespace
}  // namespace maxport
