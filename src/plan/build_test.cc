#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/check.h"
#include "plan/plan.h"

namespace maxport::plan {
namespace {

using models::LayerGroup;
using models::ParameterMap;

ParameterMap small_map(bool scanned) {
  ParameterMap map;
  for (auto [name, size] : {std::pair{"vocab", 10}, {"rows", 12}, {"emb", 4}, {"mlp", 6}, {"expert", 3}})
    map.dimensions.set(name, size);
  map.add("token_embedder.embedding", "embed.weight", "vocab emb -> vocab@0/rows emb").fill = 0.0f;
  LayerGroup layers{scanned ? "decoder.layers" : "decoder.layers_{layer}", "layers.{layer}", 0, {{2, 1}}, scanned};
  map.add(layers, "mlp.wo.kernel", "down.weight", "emb mlp -> mlp emb");
  map.add(layers, "moe.wi", "experts.{expert}.up.weight", "mlp emb -> expert emb mlp");
  map.add(layers, "norm.scale", "norm.weight", "emb -> emb", models::shift_norm());
  return map;
}

std::vector<SourceTensor> source_of(const Plan& plan) {
  std::vector<SourceTensor> source;
  for (const Tensor& tensor : plan.tensors) source.push_back({tensor.name, DType::kBfloat16, tensor.shape});
  return source;
}

TEST(Build, StacksLayersOnTheScanAxis) {
  auto plan = build(small_map(true));
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->leaves.size(), 4u);
  const Leaf& wo = plan->leaves[1];
  EXPECT_EQ(wo.checkpoint_name(), "params.params.decoder.layers.mlp.wo.kernel");
  EXPECT_EQ(wo.shape, (Shape{6, 2, 4}));
  EXPECT_EQ(wo.stack_axes, (std::vector<int>{1}));
  EXPECT_EQ(plan->links_of(wo)[1].maxtext_offset, 4);
  EXPECT_EQ(plan->tensors[plan->links_of(wo)[1].tensor].name, "layers.1.down.weight");
  const Leaf& experts = plan->leaves[2];
  EXPECT_EQ(experts.shape, (Shape{3, 2, 4, 6}));
  EXPECT_EQ(experts.link_count, 6u);
  EXPECT_EQ(plan->leaves[3].shape, (Shape{4, 2}));
  EXPECT_TRUE(check_cover(*plan)->empty());
}

TEST(Build, GivesEachUnscannedLayerItsOwnLeaf) {
  auto plan = build(small_map(false));
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->leaves.size(), 7u);
  EXPECT_EQ(plan->leaves[2].path, "decoder.layers_1.mlp.wo.kernel");
  EXPECT_EQ(plan->leaves[3].shape, (Shape{3, 4, 6}));
  EXPECT_TRUE(check_cover(*plan)->empty());
}

TEST(Build, PutsLoopsOfBlocksAndPositionsSideBySide) {
  ParameterMap map;
  map.dimensions.set("emb", 4);
  map.dimensions.set("mlp", 6);
  map.add(LayerGroup{"decoder.local", "layers.{layer}", 0, {{2, 6}, {5, 1}}, true}, "wo.kernel", "down.weight",
          "emb mlp -> mlp emb");
  auto plan = build(map);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->leaves[0].shape, (Shape{6, 2, 5, 4}));
  EXPECT_EQ(plan->tensors[7].name, "layers.8.down.weight");
  EXPECT_TRUE(check_cover(*plan)->empty());
}

TEST(Build, NumbersLayersByNameAndByPosition) {
  ParameterMap map;
  map.dimensions.set("emb", 4);
  map.add(LayerGroup{"extra_{number}.at_{index}.of_{layer}", "layers.{layer}", 61, {{2, 1}}, false}, "scale",
          "norm.weight", "emb -> emb");
  auto plan = build(map);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->leaves[1].path, "extra_2.at_1.of_62.scale");
  EXPECT_EQ(plan->tensors[1].name, "layers.62.norm.weight");
}

TEST(Build, RefusesAnAbsurdNumberOfPieces) {
  ParameterMap map;
  map.dimensions.set("emb", 4);
  map.dimensions.set("expert", 65536);
  map.add(LayerGroup{"decoder.layers", "layers.{layer}", 0, {{4096, 1}}, true}, "wi", "experts.{expert}.weight",
          "emb -> expert emb");
  auto plan = build(map);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind(), ErrorKind::kResourceLimit);
}

TEST(Build, RefusesARuleWhoseIndexHasNoPlace) {
  ParameterMap map;
  map.dimensions.set("emb", 4);
  map.dimensions.set("expert", 3);
  map.add("a", "x.weight", "emb -> expert emb");
  auto plan = build(map);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message(), testing::HasSubstr("x.weight"));
}

TEST(Check, AccountsForEverySourceTensor) {
  ParameterMap map = small_map(true);
  map.ignore("*.inv_freq", "rotary tables are computed");
  auto plan = build(map);
  ASSERT_TRUE(plan);
  auto source = source_of(*plan);
  source.push_back({"layers.0.rotary.inv_freq", DType::kFloat32, {2}});
  auto account = check(*plan, map, source);
  ASSERT_TRUE(account);
  EXPECT_TRUE(account->good());
  EXPECT_EQ(account->tensors_used, 11u);
  EXPECT_EQ(account->ignored.size(), 1u);
  EXPECT_EQ(account->elements_filled_in, 8);
  EXPECT_EQ(account->leaves_filled, 4u);
}

TEST(Check, NamesMissingUnusedAndMisshapenTensors) {
  const ParameterMap map = small_map(true);
  auto plan = build(map);
  ASSERT_TRUE(plan);
  auto source = source_of(*plan);
  source[1].name = "layers.0.other.weight";
  source[3].shape = {4, 6};
  auto account = check(*plan, map, source);
  ASSERT_TRUE(account);
  std::vector<FaultKind> kinds;
  for (const Fault& fault : account->faults) kinds.push_back(fault.kind);
  EXPECT_THAT(kinds, testing::UnorderedElementsAre(FaultKind::kMissing, FaultKind::kUnused, FaultKind::kWrongShape));
  EXPECT_THAT(to_error(*account).message(), testing::HasSubstr("layers.0.other.weight"));
}

TEST(Check, SaysHowManyLayersConfigAndWeightsHave) {
  const ParameterMap map = small_map(true);
  auto plan = build(map);
  auto source = source_of(*plan);
  std::erase_if(source, [](const SourceTensor& tensor) { return tensor.name.starts_with("layers.1."); });
  auto account = check(*plan, map, source);
  ASSERT_FALSE(account->good());
  EXPECT_THAT(account->faults[0].text, testing::HasSubstr("config says 2 layers, weights hold 1"));
  EXPECT_EQ(to_error(*account).kind(), ErrorKind::kNotFound);
}

TEST(Check, FindsElementsFilledTwiceAndNotAtAll) {
  ParameterMap map;
  map.dimensions.set("emb", 4);
  map.dimensions.set("two_emb", 8);
  map.add(LayerGroup{"a", "m", 0, {{1, 1}}, false}, "x",
          {{"p", "emb -> emb@0/two_emb"}, {"q", "emb -> emb@3/two_emb"}});
  auto faults = check_cover(*build(map));
  ASSERT_TRUE(faults);
  ASSERT_EQ(faults->size(), 1u);
  EXPECT_EQ((*faults)[0].kind, FaultKind::kFilledTwice);
  map.rules[0].parts[1].pattern = "emb@0/two_emb -> emb@4/two_emb";
  faults = check_cover(*build(map));
  ASSERT_EQ(faults->size(), 1u);
  EXPECT_EQ((*faults)[0].kind, FaultKind::kPartlyUsed);
  map.rules[0].parts.pop_back();
  faults = check_cover(*build(map));
  ASSERT_EQ(faults->size(), 1u);
  EXPECT_EQ((*faults)[0].kind, FaultKind::kUnfilled);
}

}  // namespace
}  // namespace maxport::plan
