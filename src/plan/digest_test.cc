#include "plan/digest.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace maxport::plan {
namespace {

Plan example() {
  models::ParameterMap map;
  map.dimensions.set("emb", 6);
  map.dimensions.set("mlp", 10);
  map.add(models::LayerGroup{"layers", "{layer}", 0, {{3, 1}}, true}, "wi", "up", "mlp emb -> emb mlp");
  map.add(models::LayerGroup{"layers", "{layer}", 0, {{3, 1}}, true}, "wo", "down", "emb mlp -> mlp emb");
  return *build(map);
}

TEST(Digest, IsTheSameForEqualPlans) {
  EXPECT_EQ(digest(example()), digest(example()));
  EXPECT_EQ(digest(example()).size(), 32u);
}

TEST(Digest, ChangesWithEverythingThatDecidesTheOutput) {
  const std::function<void(Plan&)> changes[] = {
      [](Plan&) {},
      [](Plan& plan) { plan.tensors[1].name += "x"; },
      [](Plan& plan) { std::swap(plan.tensors[0].shape[0], plan.tensors[0].shape[1]); },
      [](Plan& plan) { plan.tensors.pop_back(); },
      [](Plan& plan) { plan.leaves[0].collection = "other"; },
      [](Plan& plan) { plan.leaves[0].path += "x"; },
      [](Plan& plan) { ++plan.leaves[1].shape[2]; },
      [](Plan& plan) { plan.leaves[1].stack_axes = {0}; },
      [](Plan& plan) { plan.leaves[0].arithmetic.kind = models::Arithmetic::Kind::kAdd; },
      [](Plan& plan) { plan.leaves[0].arithmetic.to_maxtext = 0.5f; },
      [](Plan& plan) { plan.leaves[0].arithmetic.to_huggingface = 0.5f; },
      [](Plan& plan) { plan.leaves[0].arithmetic.keeps_float32 = true; },
      [](Plan& plan) { plan.leaves[0].fill = 0.f; },
      [](Plan& plan) { plan.leaves[0].fill = 1.f; },
      [](Plan& plan) { --plan.leaves[0].link_count; },
      [](Plan& plan) { ++plan.walks[0].extents[0]; },
      [](Plan& plan) { ++plan.walks[0].huggingface_strides[0]; },
      [](Plan& plan) { ++plan.walks[0].maxtext_strides[0]; },
      [](Plan& plan) { ++plan.links[0].tensor; },
      [](Plan& plan) { ++plan.links[0].leaf; },
      [](Plan& plan) { ++plan.links[0].walk; },
      [](Plan& plan) { ++plan.links[0].huggingface_offset; },
      [](Plan& plan) { ++plan.links[0].maxtext_offset; },
      // What moves from one field to its neighbour.
      [](Plan& plan) { std::swap(plan.leaves[0].collection, plan.leaves[0].path); },
      [](Plan& plan) {
        plan.leaves[0].collection += plan.leaves[0].path;
        plan.leaves[0].path.clear();
      },
  };
  std::set<std::string> digests;
  for (const auto& change : changes) {
    Plan plan = example();
    change(plan);
    EXPECT_TRUE(digests.insert(digest(plan)).second) << "change " << &change - changes;
  }
}

}  // namespace
}  // namespace maxport::plan
