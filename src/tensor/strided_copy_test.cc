#include "tensor/strided_copy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "tensor/scalar_cast.h"
#include "tensor/shape.h"
#include "tensor/simd_targets_for_test.h"

namespace maxport {
namespace {

/// A buffer for one side of a walk: the elements that it reaches and some bytes around them.
struct Side {
  Bytes bytes;
  int64_t origin = 0;  ///< byte offset of index zero
};

Side side_for(const StridedWalk& walk, const std::vector<int64_t>& strides, int64_t element_bytes, int64_t margin) {
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t reach = std::max<int64_t>(0, walk.extents[i] - 1) * strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = (high - low + 1) * element_bytes + 2 * margin + 1;
  return {Bytes(static_cast<size_t>(size)), margin - low * element_bytes};
}

void fill_random(Bytes& bytes, uint32_t seed) {
  std::minstd_rand random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8);
}

void naive_apply(const ElementOp& op, const std::byte* in, std::byte* out) {
  std::byte rounded[16];
  scalar_cast(op.source, in, op.compute_input, rounded, 1);
  if (op.kind == ElementOp::Kind::kCopy) return scalar_cast(op.compute_input, rounded, op.target, out, 1);
  float value = 0;
  scalar_cast(op.compute_input, rounded, DType::kFloat32, reinterpret_cast<std::byte*>(&value), 1);
  value = op.kind == ElementOp::Kind::kMultiply ? value * op.operand : value + op.operand;
  scalar_cast(DType::kFloat32, reinterpret_cast<std::byte*>(&value), op.target, out, 1);
}

void naive_copy(const StridedWalk& walk, const ElementOp& op, const std::byte* source, std::byte* target) {
  const int64_t count = element_count(walk.extents);
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, from = 0, to = 0;
    for (size_t k = walk.extents.size(); k-- > 0; rest /= walk.extents[k]) {
      from += rest % walk.extents[k] * walk.source_strides[k];
      to += rest % walk.extents[k] * walk.target_strides[k];
    }
    naive_apply(op, source + from * dtype_bytes(op.source), target + to * dtype_bytes(op.target));
  }
}

/// The walk gives what the definition gives and touches no other byte, with all sets of instructions.
bool matches_naive(const StridedWalk& walk, const ElementOp& op, int64_t margin, uint32_t seed = 1) {
  Side source = side_for(walk, walk.source_strides, dtype_bytes(op.source), margin);
  Side target = side_for(walk, walk.target_strides, dtype_bytes(op.target), margin);
  fill_random(source.bytes, seed);
  fill_random(target.bytes, seed + 1);
  Bytes expected = target.bytes;
  naive_copy(walk, op, source.bytes.data() + source.origin, expected.data() + target.origin);
  bool same = true;
  for_each_simd_target([&] {
    Bytes out = target.bytes;
    strided_copy(walk, op, source.bytes.data() + source.origin, out.data() + target.origin);
    if (out != expected) same = false;
  });
  return same;
}

/// A value from the whole range of the generator, also in the first, "small" cases.
template <class T>
T draw(const rc::Gen<T>& generator) {
  return *rc::gen::resize(rc::kNominalSize, generator);
}

bool one_in(int cases) { return draw(rc::gen::inRange(0, cases)) == 0; }

ElementOp random_op() {
  const auto plain = {DType::kUint8, DType::kBfloat16, DType::kFloat32, DType::kInt64, DType::kComplex128};
  if (one_in(2)) return ElementOp::copy(draw(rc::gen::elementOf(plain)));
  const std::vector<DType> types = {DType::kBfloat16,       DType::kFloat32, DType::kFloat16, DType::kFloat8E4m3fn,
                                    DType::kFloat8E4m3fnuz, DType::kFloat64, DType::kInt32,   DType::kUint8};
  using Kind = ElementOp::Kind;
  const DType source = draw(rc::gen::elementOf(types));
  const DType compute = one_in(2) ? source : draw(rc::gen::elementOf(types));
  const Kind kind = draw(rc::gen::element(Kind::kCopy, Kind::kMultiply, Kind::kAdd));
  return {source, compute, kind, 1.7f, draw(rc::gen::elementOf(types))};
}

std::vector<int64_t> random_extents() {
  const std::vector<int64_t> extents = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130, 300};
  std::vector<int64_t> out;
  int64_t left = 20000;
  for (int rank = draw(rc::gen::inRange(0, 7)); rank > 0; --rank) {
    out.push_back(std::min(left, draw(rc::gen::elementOf(extents))));
    left /= out.back();
  }
  return out;
}

/// Strides of a layout with the axes in any order, here and there with a gap or backwards.
std::vector<int64_t> random_strides(const std::vector<int64_t>& extents, bool may_repeat) {
  std::vector<size_t> order(extents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::minstd_rand(draw(rc::gen::arbitrary<uint32_t>())));
  std::vector<int64_t> strides(extents.size());
  int64_t stride = 1;
  for (size_t axis : order) {
    const int trait = draw(rc::gen::inRange(0, 12));
    if (trait == 0) stride *= 2;
    if (trait == 1) stride += 1;
    strides[axis] = trait == 2 ? -stride : trait == 3 && may_repeat ? 0 : stride;
    stride *= extents[axis];
  }
  return strides;
}

RC_GTEST_PROP(StridedCopy, EqualsItsDefinitionForAnyWalk, ()) {
  for (int i = 0; i < 10; ++i) {
    StridedWalk walk;
    walk.extents = random_extents();
    walk.source_strides = random_strides(walk.extents, true);
    walk.target_strides = random_strides(walk.extents, false);
    const int64_t margin = draw(rc::gen::inRange(0, 9));
    RC_ASSERT(matches_naive(walk, random_op(), margin, draw(rc::gen::arbitrary<uint32_t>())));
  }
}

StridedWalk transposition(int64_t rows, int64_t columns) { return {{columns, rows}, {1, columns}, {rows, 1}}; }

const std::vector<ElementOp> kOps = {
    ElementOp::copy(DType::kUint8),
    ElementOp::copy(DType::kBfloat16),
    ElementOp::copy(DType::kFloat32),
    ElementOp::copy(DType::kFloat64),
    ElementOp::copy(DType::kComplex128),
    ElementOp::convert(DType::kBfloat16, DType::kFloat32),
    ElementOp::convert(DType::kFloat32, DType::kBfloat16),
    {DType::kBfloat16, DType::kBfloat16, ElementOp::Kind::kMultiply, 0.088388346f, DType::kBfloat16}};

TEST(StridedCopy, TransposesMatricesOfSizesAroundTheBlockEdges) {
  for (const ElementOp& op : kOps)
    for (int64_t rows : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 129})
      for (int64_t columns : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 129})
        ASSERT_TRUE(matches_naive(transposition(rows, columns), op, 3)) << rows << " x " << columns;
}

TEST(StridedCopy, TransposesWithRopeOrderBothWays) {
  const int64_t heads = 3, half = 20, emb = 75;
  const StridedWalk forth{
      {emb, heads, half, 2}, {1, 2 * half * emb, emb, half * emb}, {heads * half * 2, half * 2, 2, 1}};
  const StridedWalk back{forth.extents, forth.target_strides, forth.source_strides};
  for (const ElementOp& op : kOps) {
    EXPECT_TRUE(matches_naive(forth, op, 1));
    EXPECT_TRUE(matches_naive(back, op, 1));
  }
}

TEST(StridedCopy, InterleavesAndSeparatesPairs) {
  for (const ElementOp& op : kOps)
    for (int64_t half : {1, 2, 15, 16, 17, 64, 100}) {
      const StridedWalk forth{{37, half, 2}, {2 * half, 1, half}, {2 * half, 2, 1}};
      const StridedWalk back{forth.extents, forth.target_strides, forth.source_strides};
      EXPECT_TRUE(matches_naive(forth, op, 1)) << half;
      EXPECT_TRUE(matches_naive(back, op, 1)) << half;
      EXPECT_TRUE(matches_naive({{5, half}, {2 * half, 2}, {half, 1}}, op, 0)) << half;
      EXPECT_TRUE(matches_naive({{5, half}, {half, 1}, {2 * half, 2}}, op, 0)) << half;
    }
}

TEST(StridedCopy, PermutesTheAxesOfConvolutionKernels) {
  const int64_t out = 70, in = 3, size = 14;
  const StridedWalk walk{
      {size, size, in, out}, {size, 1, size * size, in * size * size}, {size * in * out, in * out, out, 1}};
  for (const ElementOp& op : kOps) EXPECT_TRUE(matches_naive(walk, op, 2));
}

TEST(StridedCopy, MayReadAnElementMoreThanOnce) {
  for (const ElementOp& op : kOps) {
    EXPECT_TRUE(matches_naive({{3, 20}, {1, 2}, {20, 1}}, op, 0));   // windows two apart
    EXPECT_TRUE(matches_naive({{20, 30}, {1, 1}, {30, 1}}, op, 0));  // all shifts of a row
    EXPECT_TRUE(matches_naive({{40, 30}, {0, 1}, {1, 40}}, op, 0));  // copies of a column
  }
}

TEST(StridedCopy, MovesSlicesOfWiderTensors) {
  for (const ElementOp& op : kOps) {
    EXPECT_TRUE(matches_naive({{40, 50}, {1, 90}, {70, 1}}, op, 5));
    EXPECT_TRUE(matches_naive({{6, 40, 50}, {5000, 90, 1}, {50, 310, 1}}, op, 5));
  }
}

TEST(StridedCopy, DoesNothingForAnEmptyWalkAndOneElementForAScalar) {
  const std::byte source{7};
  std::byte target{0};
  strided_copy({{3, 0}, {1, 3}, {2, 1}}, ElementOp::copy(DType::kUint8), &source, &target);
  EXPECT_EQ(target, std::byte{0});
  strided_copy({}, ElementOp::copy(DType::kUint8), &source, &target);
  EXPECT_EQ(target, source);
}

}  // namespace
}  // namespace maxport
