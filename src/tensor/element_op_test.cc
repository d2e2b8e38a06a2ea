#include "tensor/element_op.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "tensor/scalar_cast.h"
#include "tensor/simd_targets_for_test.h"

namespace maxport {
namespace {

using Kind = ElementOp::Kind;

/// float32 codes: every bfloat16, and beside each the ties and neighbours that decide a rounding.
std::vector<uint32_t> float32_codes() {
  std::vector<uint32_t> out;
  for (uint32_t high = 0; high < 65536; ++high)
    for (uint32_t low : {0x0000, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001}) out.push_back((high << 16) + low);
  return out;
}

Bytes every_code(DType dtype) {
  Bytes out;
  if (dtype == DType::kFloat32) {
    const std::vector<uint32_t> codes = float32_codes();
    const auto bytes = std::as_bytes(std::span(codes));
    out.assign(bytes.begin(), bytes.end());
  } else if (dtype_bytes(dtype) == 2) {
    std::vector<uint16_t> codes(65536);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
    const auto bytes = std::as_bytes(std::span(codes));
    out.assign(bytes.begin(), bytes.end());
  } else {
    for (int i = 0; i < 256; ++i) out.push_back(static_cast<std::byte>(i));
  }
  return out;
}

/// The definition, step by step.
Bytes defined(const ElementOp& op, ByteSpan in) {
  const size_t count = in.size() / static_cast<size_t>(dtype_bytes(op.source));
  Bytes rounded(count * static_cast<size_t>(dtype_bytes(op.compute_input)));
  Bytes out(count * static_cast<size_t>(dtype_bytes(op.target)));
  scalar_cast(op.source, in.data(), op.compute_input, rounded.data(), count);
  if (op.kind == Kind::kCopy) {
    scalar_cast(op.compute_input, rounded.data(), op.target, out.data(), count);
    return out;
  }
  std::vector<float> values(count);
  auto* bytes = reinterpret_cast<std::byte*>(values.data());
  scalar_cast(op.compute_input, rounded.data(), DType::kFloat32, bytes, count);
  for (float& value : values) value = op.kind == Kind::kMultiply ? value * op.operand : value + op.operand;
  scalar_cast(DType::kFloat32, bytes, op.target, out.data(), count);
  return out;
}

Bytes applied(const ElementOp& op, ByteSpan in) {
  Bytes out(in.size() / static_cast<size_t>(dtype_bytes(op.source)) * static_cast<size_t>(dtype_bytes(op.target)));
  apply(op, in, out);
  return out;
}

TEST(ElementOp, DoesWhatItsDefinitionSaysForEveryCodeAndCombination) {
  for (DType source : {DType::kFloat32, DType::kBfloat16, DType::kFloat16, DType::kFloat8E4m3fn, DType::kFloat8E5m2}) {
    const Bytes in = every_code(source);
    for (DType compute : {source, DType::kFloat32, DType::kBfloat16, DType::kFloat16})
      for (DType target : {DType::kFloat32, DType::kBfloat16, DType::kFloat16, DType::kFloat8E4m3fn})
        for (Kind kind : {Kind::kCopy, Kind::kMultiply, Kind::kAdd}) {
          const ElementOp op{source, compute, kind, kind == Kind::kAdd ? 1.0f : 0.088388346f, target};
          const Bytes expected = defined(op, in);
          for_each_simd_target([&] {
            EXPECT_TRUE(applied(op, in) == expected) << dtype_name(source) << " " << dtype_name(compute) << " "
                                                     << static_cast<int>(kind) << " " << dtype_name(target);
          });
        }
  }
}

float from_bfloat16(uint16_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code) << 16); }

/// Nearest bfloat16 of a finite float32, by comparing its two neighbours.
uint16_t nearest_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rest = bits & 0xFFFF, down = bits >> 16;
  return static_cast<uint16_t>(rest > 0x8000 || (rest == 0x8000 && down % 2 == 1) ? down + 1 : down);
}

TEST(ElementOp, ScalesBfloat16WithOneProductAndOneRounding) {
  const float scale = std::bit_cast<float>(0x3DB504F3u);  // 128^-1/2
  const ElementOp op{DType::kBfloat16, DType::kBfloat16, Kind::kMultiply, scale, DType::kBfloat16};
  const Bytes in = every_code(DType::kBfloat16), out = applied(op, in);
  for (uint32_t code = 0; code < 65536; ++code) {
    const float value = from_bfloat16(static_cast<uint16_t>(code));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(load_le<uint16_t>(&out[2 * code]), nearest_bfloat16(value * scale)) << code;
  }
}

TEST(ElementOp, KeepsSubnormals) {
  const ElementOp op{DType::kFloat32, DType::kFloat32, Kind::kMultiply, 0.5f, DType::kFloat32};
  const std::vector<uint32_t> in(33, 0x00000006);
  const Bytes out = applied(op, std::as_bytes(std::span(in)));
  for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(load_le<uint32_t>(&out[4 * i]), 3u);
}

TEST(ElementOp, ShiftsANormScaleInFloat32OrRoundsTheInputFirst) {
  const float third = 1.0f / 3;
  const ByteSpan in = std::as_bytes(std::span(&third, 1));
  const ElementOp exact{DType::kFloat32, DType::kFloat32, Kind::kAdd, 1, DType::kFloat32};
  EXPECT_EQ(std::bit_cast<float>(load_le<uint32_t>(applied(exact, in).data())), 1.0f + third);
  const ElementOp rounded{DType::kFloat32, DType::kBfloat16, Kind::kAdd, 1, DType::kFloat32};
  EXPECT_EQ(std::bit_cast<float>(load_le<uint32_t>(applied(rounded, in).data())), 1.0f + 0.333984375f);
}

TEST(ElementOp, ConvertsIntegersThroughFloat32LikeTheReference) {
  const std::vector<int64_t> in = {256, 257, 258, 259};
  const ElementOp op{DType::kInt64, DType::kFloat32, Kind::kCopy, 0, DType::kBfloat16};
  const Bytes out = applied(op, std::as_bytes(std::span(in)));
  EXPECT_EQ(from_bfloat16(load_le<uint16_t>(&out[2])), 256.0f);
  EXPECT_EQ(from_bfloat16(load_le<uint16_t>(&out[6])), 260.0f);
}

TEST(ElementOp, KnowsAPlainCopy) {
  EXPECT_TRUE(ElementOp::copy(DType::kComplex64).is_plain_copy());
  EXPECT_TRUE(can_apply(ElementOp::copy(DType::kComplex64)));
  EXPECT_FALSE(ElementOp::convert(DType::kBfloat16, DType::kFloat32).is_plain_copy());
  EXPECT_FALSE((ElementOp{DType::kFloat32, DType::kBfloat16, Kind::kCopy, 0, DType::kFloat32}.is_plain_copy()));
  EXPECT_FALSE((ElementOp{DType::kFloat32, DType::kFloat32, Kind::kAdd, 0, DType::kFloat32}.is_plain_copy()));
  EXPECT_FALSE(can_apply(ElementOp::convert(DType::kComplex64, DType::kFloat32)));
}

}  // namespace
}  // namespace maxport
