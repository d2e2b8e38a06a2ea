// The forms in which files store the experts of a layer: whichever the source has, the leaves come out the same.
#include <gtest/gtest.h>

#include <map>

#include "models/blocks.h"
#include "plan/check.h"

namespace maxport::plan {
namespace {

using models::ExpertTensors;

constexpr int64_t kLayers = 2, kExperts = 3, kEmb = 4, kMlp = 5;

using Tensors = std::map<std::string, std::pair<Shape, std::vector<int>>>;

class Source : public models::SourceNames {
 public:
  explicit Source(const Tensors& tensors) : tensors_(tensors) {}
  bool contains(std::string_view name) const override { return tensors_.contains(std::string(name)); }
  std::optional<Shape> shape(std::string_view name) const override {
    const auto found = tensors_.find(std::string(name));
    return found == tensors_.end() ? std::nullopt : std::optional(found->second.first);
  }
  bool contains_prefix(std::string_view prefix) const override {
    return std::ranges::any_of(tensors_, [&](const auto& tensor) { return tensor.first.starts_with(prefix); });
  }

 private:
  const Tensors& tensors_;
};

enum Projection { kGate = 1, kUp = 2, kDown = 3 };

/// A number for one weight: of the projection, of expert and layer, from input `in` to output `out`.
int weight(Projection projection, int64_t layer, int64_t expert, int64_t out, int64_t in) {
  return static_cast<int>((((projection * kLayers + layer) * kExperts + expert) * 16 + out) * 16 + in);
}

Tensors one_by_one() {
  Tensors tensors;
  for (int64_t layer = 0; layer < kLayers; ++layer)
    for (int64_t expert = 0; expert < kExperts; ++expert)
      for (const auto& [name, projection] : {std::pair{"gate_proj", kGate}, {"up_proj", kUp}, {"down_proj", kDown}}) {
        const Shape shape = projection == kDown ? Shape{kEmb, kMlp} : Shape{kMlp, kEmb};
        auto& tensor = tensors[fmt::format("layers.{}.mlp.experts.{}.{}.weight", layer, expert, name)];
        tensor.first = shape;
        for (int64_t out = 0; out < shape[0]; ++out)
          for (int64_t in = 0; in < shape[1]; ++in) tensor.second.push_back(weight(projection, layer, expert, out, in));
      }
  return tensors;
}

Tensors joined(bool transposed) {
  Tensors tensors;
  const auto swapped = [&](Shape shape) {
    if (transposed) std::swap(shape[1], shape[2]);
    return shape;
  };
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    auto& gate_up = tensors[fmt::format("layers.{}.mlp.experts.gate_up_proj", layer)];
    auto& down = tensors[fmt::format("layers.{}.mlp.experts.down_proj", layer)];
    gate_up.first = swapped({kExperts, 2 * kMlp, kEmb});
    down.first = swapped({kExperts, kEmb, kMlp});
    for (int64_t expert = 0; expert < kExperts; ++expert) {
      for (int64_t a = 0; a < gate_up.first[1]; ++a)
        for (int64_t b = 0; b < gate_up.first[2]; ++b) {
          const int64_t out = transposed ? b : a, in = transposed ? a : b;
          gate_up.second.push_back(weight(out < kMlp ? kGate : kUp, layer, expert, out % kMlp, in));
        }
      for (int64_t a = 0; a < down.first[1]; ++a)
        for (int64_t b = 0; b < down.first[2]; ++b)
          down.second.push_back(weight(kDown, layer, expert, transposed ? b : a, transposed ? a : b));
    }
  }
  return tensors;
}

std::map<std::string, std::vector<int>> leaves_of(const Tensors& tensors, ExpertTensors published) {
  const auto config = huggingface::ConfigRoles::create(Json::object(), "test");
  const models::MaxTextLayout layout;
  const Source source(tensors);
  models::ParameterMap map;
  map.dimensions.set("expert", kExperts);
  map.dimensions.set("emb", kEmb);
  map.dimensions.set("expert_mlp", kMlp);
  const models::LayerGroup layers{"decoder.layers", "layers.{layer}", 0, {{kLayers, 1}}, true};
  EXPECT_TRUE(add_experts({*config, layout, &source}, map, layers, "moe", "mlp.experts", published));
  const auto plan = build(map);
  EXPECT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(check_cover(*plan)->empty());
  std::map<std::string, std::vector<int>> leaves;
  for (const Leaf& leaf : plan->leaves) {
    std::vector<int>& values = leaves[leaf.path];
    values.assign(static_cast<size_t>(element_count(leaf.shape)), 0);
    for (const Link& link : plan->links_of(leaf)) {
      const auto found = tensors.find(plan->tensors[link.tensor].name);
      if (found == tensors.end()) {
        ADD_FAILURE() << plan->tensors[link.tensor].name;
        continue;
      }
      EXPECT_EQ(found->second.first, plan->tensors[link.tensor].shape);
      const Walk& walk = plan->walks[link.walk];
      for (int64_t n = 0; n < element_count(walk.extents); ++n) {
        int64_t rest = n, from = link.huggingface_offset, to = link.maxtext_offset;
        for (size_t i = walk.extents.size(); i-- > 0; rest /= walk.extents[i]) {
          from += rest % walk.extents[i] * walk.huggingface_strides[i];
          to += rest % walk.extents[i] * walk.maxtext_strides[i];
        }
        values[static_cast<size_t>(to)] = found->second.second[static_cast<size_t>(from)];
      }
    }
  }
  return leaves;
}

TEST(Experts, GateGoesToTheFirstAndUpToTheSecondInput) {
  const auto leaves = leaves_of(one_by_one(), ExpertTensors::kSingle);
  // [expert, layer, in, out]: expert 1, layer 1, input 3, output 2
  const size_t at = ((1 * kLayers + 1) * kEmb + 3) * kMlp + 2;
  EXPECT_EQ(leaves.at("decoder.layers.moe.wi_0")[at], weight(kGate, 1, 1, 2, 3));
  EXPECT_EQ(leaves.at("decoder.layers.moe.wi_1")[at], weight(kUp, 1, 1, 2, 3));
  const size_t down = ((2 * kLayers + 0) * kMlp + 4) * kEmb + 1;
  EXPECT_EQ(leaves.at("decoder.layers.moe.wo")[down], weight(kDown, 0, 2, 1, 4));
}

TEST(Experts, EveryFormGivesTheSameLeavesWhateverIsPublished) {
  const auto expected = leaves_of(one_by_one(), ExpertTensors::kSingle);
  for (ExpertTensors published : {ExpertTensors::kSingle, ExpertTensors::kJoined, ExpertTensors::kTransposed}) {
    EXPECT_EQ(leaves_of(one_by_one(), published), expected);
    EXPECT_EQ(leaves_of(joined(false), published), expected);
    EXPECT_EQ(leaves_of(joined(true), published), expected);
  }
}

}  // namespace
}  // namespace maxport::plan
