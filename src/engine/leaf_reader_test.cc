#include "engine/leaf_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "engine/grid.h"

namespace maxport::engine {
namespace {

using models::LayerGroup;
using models::ParameterMap;

/// Tensors in memory, filled with distinct numbers.
class MemoryTensors : public TensorReader {
 public:
  MemoryTensors(const plan::Plan& plan, DType dtype) : dtype_(dtype) {
    float next = 1;
    for (const plan::Tensor& tensor : plan.tensors) {
      std::vector<float> values;
      for (int64_t i = 0; i < element_count(tensor.shape); ++i) values.push_back(next++);
      Bytes bytes(values.size() * static_cast<size_t>(dtype_bytes(dtype)));
      apply(ElementOp::convert(DType::kFloat32, dtype), std::as_bytes(std::span(values)), bytes);
      data_.push_back(std::move(bytes));
    }
  }
  DType dtype(uint32_t) const override { return dtype_; }
  Result<> read(uint32_t tensor, uint64_t offset, MutableByteSpan out) const override {
    EXPECT_LE(offset + out.size(), data_[tensor].size());
    ++reads;
    bytes_read += out.size();
    std::memcpy(out.data(), data_[tensor].data() + offset, out.size());
    return {};
  }
  float value(uint32_t tensor, int64_t element) const {
    float out;
    const auto size = static_cast<size_t>(dtype_bytes(dtype_));
    apply(ElementOp::convert(dtype_, DType::kFloat32), ByteSpan(data_[tensor]).subspan(static_cast<size_t>(element) * size, size),
          std::as_writable_bytes(std::span(&out, 1)));
    return out;
  }
  mutable size_t reads = 0, bytes_read = 0;

 private:
  DType dtype_;
  std::vector<Bytes> data_;
};

/// The leaf element by element, straight from the plan.
std::vector<float> reference(const plan::Plan& plan, const plan::Leaf& leaf, const MemoryTensors& tensors) {
  std::vector<float> out(static_cast<size_t>(element_count(leaf.shape)), leaf.fill.value_or(-1));
  for (const plan::Link& link : plan.links_of(leaf)) {
    const plan::Walk& walk = plan.walks[link.walk];
    std::vector<int64_t> at(walk.extents.size(), 0);
    for (bool more = true; more;) {
      int64_t from = link.huggingface_offset, to = link.maxtext_offset;
      for (size_t i = 0; i < at.size(); ++i) {
        from += at[i] * walk.huggingface_strides[i];
        to += at[i] * walk.maxtext_strides[i];
      }
      float value = tensors.value(link.tensor, from);
      if (leaf.arithmetic.kind == models::Arithmetic::Kind::kAdd) value += leaf.arithmetic.to_maxtext;
      if (leaf.arithmetic.kind == models::Arithmetic::Kind::kMultiply) value *= leaf.arithmetic.to_maxtext;
      out[static_cast<size_t>(to)] = value;
      more = false;
      for (size_t i = at.size(); i-- > 0;) {
        if (++at[i] < walk.extents[i]) { more = true; break; }
        at[i] = 0;
      }
    }
  }
  return out;
}

ParameterMap all_kinds(bool scanned) {
  ParameterMap map;
  for (auto [name, size] : {std::pair{"vocab", 10}, {"rows", 12}, {"emb", 8}, {"mlp", 6}, {"expert", 4}, {"heads", 3},
                            {"half", 2}, {"dim", 4}, {"slot", 10}})
    map.dimensions.set(name, size);
  map.add("embedding", "embed", "vocab emb -> vocab@0/rows emb").fill = 0.0f;
  LayerGroup layers{scanned ? "layers" : "layers_{layer}", "{layer}", 0, {{3, 1}}, scanned};
  map.add(layers, "query", "q", "(heads 2 half) emb -> emb heads (half 2)", models::scale_query(64));
  map.add(layers, "out", "o", "emb (heads dim) -> heads dim emb");
  map.add(layers, "wi", "experts.{expert}.up", "mlp emb -> expert emb mlp");
  map.add(layers, "gate", "gate_up", "expert emb (mlp 2) -> expert emb 2 mlp");
  map.add(layers, "norm", "norm", "emb -> emb", models::shift_norm());
  map.add(layers, "qz", std::vector<models::Part>{{"qs", "(heads dim) emb -> emb (heads dim@0/slot)"},
                                                  {"zs", "(heads mlp) emb -> emb (heads mlp@4/slot)"}});
  map.add_constant(layers, "ones", "emb", 1.0f);
  return map;
}

class EveryKindOfLeaf : public testing::TestWithParam<bool> {};

TEST_P(EveryKindOfLeaf, ReadsAnyBoxAsThePlanSays) {
  auto plan = plan::build(all_kinds(GetParam()));
  ASSERT_TRUE(plan) << plan.error().message();
  MemoryTensors tensors(*plan, DType::kFloat32);
  std::mt19937 random(3);
  for (const plan::Leaf& leaf : plan->leaves) {
    auto reader = LeafReader::create(*plan, leaf, tensors, DType::kFloat32);
    ASSERT_TRUE(reader) << reader.error().message();
    const std::vector<float> want = reference(*plan, leaf, tensors);
    const auto strides = row_major_strides(leaf.shape);
    for (int trial = 0; trial < 60; ++trial) {
      Box box = Box::whole(leaf.shape);
      if (trial > 0) {
        for (size_t axis = 0; axis < box.shape.size(); ++axis) {
          box.origin[axis] = static_cast<int64_t>(random() % static_cast<uint64_t>(leaf.shape[axis]));
          box.shape[axis] = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(leaf.shape[axis] - box.origin[axis]));
        }
      }
      std::vector<float> got(static_cast<size_t>(element_count(box.shape)), -7);
      ASSERT_TRUE(reader->read(box, std::as_writable_bytes(std::span(got))));
      std::vector<int64_t> at(box.shape.size(), 0);
      for (float value : got) {
        int64_t element = 0;
        for (size_t axis = 0; axis < at.size(); ++axis) element += (box.origin[axis] + at[axis]) * strides[axis];
        ASSERT_EQ(value, want[static_cast<size_t>(element)]) << leaf.path << " element " << element;
        for (size_t axis = at.size(); axis-- > 0;) {
          if (++at[axis] < box.shape[axis]) break;
          at[axis] = 0;
        }
      }
    }
  }
}

TEST_P(EveryKindOfLeaf, GivesTheSameWholeFromChunksOfABand) {
  auto plan = plan::build(all_kinds(GetParam()));
  ASSERT_TRUE(plan);
  MemoryTensors tensors(*plan, DType::kBfloat16);
  for (const plan::Leaf& leaf : plan->leaves) {
    auto reader = LeafReader::create(*plan, leaf, tensors, DType::kFloat32);
    ASSERT_TRUE(reader);
    const std::vector<float> want = reference(*plan, leaf, tensors);
    SourceWindow window;
    ASSERT_TRUE(reader->load(Box::whole(leaf.shape), window));
    EXPECT_EQ(window.bytes(), reader->window_bytes(Box::whole(leaf.shape)));
    ChunkGrid grid{leaf.shape, -1};
    for (int64_t& extent : grid.chunk_shape) extent = std::max<int64_t>(1, extent / 2 + 1);
    const Shape counts = grid.counts(leaf.shape);
    std::vector<int64_t> position(counts.size(), 0);
    const auto strides = row_major_strides(leaf.shape);
    for (bool more = true; more;) {
      const Box box = grid.chunk_box(leaf.shape, position);
      std::vector<float> got(static_cast<size_t>(element_count(grid.chunk_shape)), -7);
      reader->fill(box, grid.chunk_shape, window, std::as_writable_bytes(std::span(got)));
      std::vector<int64_t> at(box.shape.size(), 0);
      for (float value : got) {
        int64_t element = 0;
        bool inside = true;
        for (size_t axis = 0; axis < at.size(); ++axis) {
          inside = inside && at[axis] < box.shape[axis];
          element += (box.origin[axis] + at[axis]) * strides[axis];
        }
        ASSERT_EQ(value, inside ? want[static_cast<size_t>(element)] : leaf.fill.value_or(0.0f)) << leaf.path;
        for (size_t axis = at.size(); axis-- > 0;) {
          if (++at[axis] < grid.chunk_shape[axis]) break;
          at[axis] = 0;
        }
      }
      more = false;
      for (size_t axis = position.size(); axis-- > 0;) {
        if (++position[axis] < counts[axis]) { more = true; break; }
        position[axis] = 0;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ScannedAndUnscanned, EveryKindOfLeaf, testing::Bool());

TEST(LeafReader, RoundsToTheRequestedTypeToNearestEven) {
  ParameterMap map;
  map.dimensions.set("emb", 2);
  map.add("norm", "norm", "emb -> emb");
  auto plan = plan::build(map);
  class OneTensor : public TensorReader {
   public:
    DType dtype(uint32_t) const override { return DType::kFloat32; }
    Result<> read(uint32_t, uint64_t, MutableByteSpan out) const override {
      const uint32_t bits[2] = {0x3f808000, 0x3f818000};  // ties: down to even, up to even
      std::memcpy(out.data(), bits, out.size());
      return {};
    }
  } tensors;
  auto reader = LeafReader::create(*plan, plan->leaves[0], tensors, DType::kBfloat16);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->dtype(), DType::kBfloat16);
  uint16_t got[2];
  ASSERT_TRUE(reader->read(Box::whole(Shape{2}), std::as_writable_bytes(std::span(got))));
  EXPECT_EQ(got[0], 0x3f80);
  EXPECT_EQ(got[1], 0x3f82);
}

TEST(LeafReader, ReadsARowBlockOfATransposedMatrixOnce) {
  ParameterMap map;
  map.dimensions.set("emb", 256);
  map.dimensions.set("mlp", 512);
  map.add("wi", "up", "mlp emb -> emb mlp");
  auto plan = plan::build(map);
  MemoryTensors tensors(*plan, DType::kFloat32);
  auto reader = LeafReader::create(*plan, plan->leaves[0], tensors, DType::kFloat32);
  SourceWindow window;
  ASSERT_TRUE(reader->load(Box{{0, 128}, {256, 128}}, window));
  EXPECT_EQ(tensors.reads, 1u);
  EXPECT_EQ(tensors.bytes_read, 128u * 256 * 4);
}

}  // namespace
}  // namespace maxport::engine
