#include "compare/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace maxport::compare {
namespace {

template <class T>
Statistics of(DType dtype, const std::vector<T>& a, const std::vector<T>& b, double tolerance = 0) {
  Statistics out;
  compare_run(dtype, reinterpret_cast<const std::byte*>(a.data()), dtype, reinterpret_cast<const std::byte*>(b.data()),
              a.size() * sizeof(T) / static_cast<size_t>(dtype_bytes(dtype)), 0, tolerance, out);
  return out;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Statistics, CountAndMeasureWhatDiffers) {
  const Statistics s = of<float>(DType::kFloat32, {1, 2, 3, 4}, {1, 2.5, 3, 3});
  EXPECT_EQ(s.elements, 4u);
  EXPECT_EQ(s.differing, 2u);
  EXPECT_EQ(s.beyond, 2u);
  EXPECT_EQ(s.max_difference, 1);
  EXPECT_EQ(s.mean_difference(), 1.5 / 4);
  EXPECT_EQ(s.first, 1u);
  EXPECT_EQ(number(DType::kFloat32, s.first_a.bits.data()), 2);
  EXPECT_EQ(number(DType::kFloat32, s.first_b.bits.data()), 2.5);
  const double dot = 1 + 5 + 9 + 12, a = 1 + 4 + 9 + 16, b = 1 + 6.25 + 9 + 9;
  EXPECT_DOUBLE_EQ(*s.cosine(), dot / std::sqrt(a * b));
  EXPECT_EQ(s.max_ulp, uint64_t{1} << 22);  // 2 to 2.5: a quarter of the binade's 2^23 values; 4 to 3: half of one
}

TEST(Statistics, TakeEqualBitsAsEqualAlsoOfNan) {
  const Statistics s = of<float>(DType::kFloat32, {kNan, kInfinity, 1}, {kNan, kInfinity, 1});
  EXPECT_EQ(s.differing, 0u);
  EXPECT_EQ(s.equal_nans, 1u);
  EXPECT_EQ(s.cosine(), 1);
  const Statistics beside = of<float>(DType::kFloat32, {kNan, 1}, {kNan, 2});
  EXPECT_EQ(beside.differing, 1u) << "also beside an element that differs";
  EXPECT_EQ(beside.equal_nans, 1u);
}

TEST(Statistics, CountNanAndInfinityApartFromDifferences) {
  const Statistics s = of<float>(DType::kFloat32, {kNan, kInfinity, kInfinity, 1}, {1, -kInfinity, kInfinity, 2}, 1e30);
  EXPECT_EQ(s.differing, 3u);
  EXPECT_EQ(s.non_finite, 2u);
  EXPECT_EQ(s.beyond, 2u) << "a tolerance never covers what is not finite";
  EXPECT_EQ(s.max_difference, 1);
  EXPECT_EQ(s.mean_difference(), 0.5);
}

TEST(Statistics, TellNansOfOtherBitsApart) {
  const std::vector<uint16_t> a{0x7fc0}, b{0x7fc1};
  EXPECT_EQ(of<uint16_t>(DType::kBfloat16, a, b).differing, 1u);
  EXPECT_EQ(of<uint16_t>(DType::kBfloat16, a, a).differing, 0u);
}

TEST(Statistics, TellZeroFromMinusZero) {
  const Statistics exact = of<float>(DType::kFloat32, {0.0f}, {-0.0f});
  EXPECT_EQ(exact.beyond, 1u);
  EXPECT_EQ(exact.max_difference, 0);
  EXPECT_EQ(exact.max_ulp, 1u);
  EXPECT_EQ(of<float>(DType::kFloat32, {0.0f}, {-0.0f}, 1e-9).beyond, 0u);
}

TEST(Statistics, CountUnitsInTheLastPlaceAcrossBinadesAndZero) {
  const auto ulp = [](DType dtype, uint64_t a, uint64_t b) {
    return ulp_distance(dtype, reinterpret_cast<const std::byte*>(&a), reinterpret_cast<const std::byte*>(&b));
  };
  EXPECT_EQ(ulp(DType::kBfloat16, 0x3f80, 0x3f7f), 1u);       // 1 and the value below
  EXPECT_EQ(ulp(DType::kBfloat16, 0x0001, 0x8001), 3u);       // the smallest values on either side of both zeros
  EXPECT_EQ(ulp(DType::kFloat8E4m3fn, 0x7e, 0xfe), 2u * 0x7e + 1);
  EXPECT_EQ(ulp(DType::kFloat4E2m1fn, 0x1, 0x9), 3u);         // a byte each, four bits count
  EXPECT_EQ(ulp(DType::kFloat64, std::bit_cast<uint64_t>(1.0), std::bit_cast<uint64_t>(std::nextafter(1.0, 2.0))), 1u);
  EXPECT_EQ(ulp(DType::kInt8, 0xff, 0x01), 2u);               // -1 and 1
  EXPECT_EQ(ulp(DType::kUint8, 0xff, 0x01), 254u);
  EXPECT_EQ(ulp(DType::kFloat8E8m0fnu, 0x80, 0x7f), 1u);      // no sign
}

TEST(Statistics, CompareNumbersOfTwoTypes) {
  const std::vector<float> a{1, 2, kNan};
  const std::vector<uint16_t> b{0x3f80, 0x4000, 0x7fc0};  // bfloat16: 1, 2, NaN
  Statistics s;
  compare_run(DType::kFloat32, reinterpret_cast<const std::byte*>(a.data()), DType::kBfloat16, reinterpret_cast<const std::byte*>(b.data()), 3, 0, 0, s);
  EXPECT_EQ(s.differing, 0u);
}

TEST(Statistics, CompareComplexNumbersByTheirBits) {
  const std::vector<double> a{1, 2, 3, 4}, b{1, 2, 3, 5};
  const Statistics s = of<double>(DType::kComplex128, a, a);
  EXPECT_EQ(s.differing, 0u);
  Statistics t;
  compare_run(DType::kComplex128, reinterpret_cast<const std::byte*>(a.data()), DType::kComplex128, reinterpret_cast<const std::byte*>(b.data()), 2, 10, 0, t);
  EXPECT_EQ(t.differing, 1u);
  EXPECT_EQ(t.first, 11u);
}

TEST(Statistics, AreTheSameInOneRunAndMerged) {
  std::vector<float> a(5000), b(5000);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 17);
    b[i] = i % 1000 == 999 ? a[i] + 1 : a[i];
  }
  const Statistics whole = of(DType::kFloat32, a, b);
  Statistics merged;
  for (size_t i = 0; i < a.size(); i += 700) {
    Statistics part;
    const size_t n = std::min<size_t>(700, a.size() - i);
    compare_run(DType::kFloat32, reinterpret_cast<const std::byte*>(&a[i]), DType::kFloat32, reinterpret_cast<const std::byte*>(&b[i]), n, i, 0, part);
    merged.merge(part);
  }
  EXPECT_EQ(merged.differing, whole.differing);
  EXPECT_EQ(merged.first, whole.first);
  EXPECT_EQ(merged.first, 999u);
  EXPECT_EQ(merged.max_ulp, whole.max_ulp);
  EXPECT_DOUBLE_EQ(*merged.cosine(), *whole.cosine());
  EXPECT_DOUBLE_EQ(merged.a_squares, whole.a_squares);
}

}  // namespace
}  // namespace maxport::compare
