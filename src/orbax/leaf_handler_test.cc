#include "orbax/leaf_handler.h"

#include <gmock/gmock.h>

#include "orbax/checkpointables.h"
#include "orbax/metadata.h"

namespace maxport::orbax {
namespace {

using testing::HasSubstr;

/// A handler of a user's own type, a pair of numbers, that is stored as a small array.
class PairHandler final : public LeafHandler {
 public:
  explicit PairHandler(std::string recorded, std::vector<std::string> secondary = {})
      : recorded_(std::move(recorded)), secondary_(std::move(secondary)) {}
  std::string name() const override { return "PairHandler"; }
  std::string recorded_type() const override { return recorded_; }
  std::vector<std::string> secondary_types() const override { return secondary_; }
  Result<LeafContent> content(const Leaf& leaf) const override {
    const auto pair = std::any_cast<std::pair<int32_t, int32_t>>(leaf.value);
    Bytes bytes(8);
    store_le(pair.first, bytes.data());
    store_le(pair.second, bytes.data() + 4);
    MAXPORT_ASSIGN_OR_RETURN(auto tensor, memory_tensor(DType::kInt32, {2}, std::move(bytes)));
    return LeafContent(tensor);
  }

 private:
  std::string recorded_;
  std::vector<std::string> secondary_;
};

std::shared_ptr<const LazyTensor> some_tensor() { return *memory_tensor(DType::kInt8, {2}, Bytes(2)); }

TEST(LeafHandlerRegistry, RecordsNumpyArraysForLazyTensors) {
  const auto registry = LeafHandlerRegistry::standard();
  EXPECT_EQ(registry.find(kLazyTensorLeaf)->recorded_type(), "np.ndarray");
  EXPECT_THAT(registry.find(kLazyTensorLeaf)->secondary_types(), testing::ElementsAre("jax.Array"));
  EXPECT_EQ(registry.find_recorded("jax.Array"), registry.find(kLazyTensorLeaf));
  EXPECT_EQ(registry.find_recorded("string"), registry.find(kTextLeaf));
  EXPECT_EQ(registry.find_recorded("array"), nullptr);
}

TEST(LeafHandlerRegistry, RefusesAHandlerThatRecordsATypeStockReadersDoNotKnow) {
  LeafHandlerRegistry registry;
  for (const char* type : {"array", "LazyTensor", "orbax.checkpoint.experimental.v1.ArrayLeafHandler", "", "np.array"}) {
    auto status = registry.add("Pair", std::make_shared<PairHandler>(type));
    ASSERT_FALSE(status) << type;
    EXPECT_EQ(status.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(status.error().message(),
                HasSubstr(fmt::format("PairHandler records the type \"{}\", which stock Orbax does not know", type)));
  }
  EXPECT_THAT(registry.add("Pair", std::make_shared<PairHandler>("np.ndarray", std::vector<std::string>{"x"})).error().message(),
              HasSubstr("\"x\""));
  EXPECT_EQ(registry.find("Pair"), nullptr);
}

TEST(LeafHandlerRegistry, UsesAHandlerOfTheCallersOwn) {
  auto registry = LeafHandlerRegistry::standard();
  ASSERT_TRUE(registry.add("Pair", std::make_shared<PairHandler>("np.ndarray")));
  EXPECT_THAT(registry.add("Pair", std::make_shared<PairHandler>("np.ndarray")).error().message(),
              HasSubstr("already has a handler, PairHandler"));
  const Leaf leaf{{{"p"}}, "Pair", std::pair<int32_t, int32_t>(5, 6)};
  auto resolved = resolve_leaves(registry, std::span(&leaf, 1));
  ASSERT_TRUE(resolved) << resolved.error().message();
  EXPECT_EQ((*resolved)[0].value_type, "np.ndarray");
  EXPECT_EQ(std::get<std::shared_ptr<const LazyTensor>>((*resolved)[0].content)->shape(), (Shape{2}));
}

TEST(ResolveLeaves, NamesThePathAndTheTypeOfALeafWithoutHandler) {
  const Leaf leaves[] = {int_leaf({{"step"}}, 1), {{{"params"}, {"odd"}}, "Quaternion", 5}};
  auto resolved = resolve_leaves(LeafHandlerRegistry::standard(), leaves);
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(resolved.error().message(),
            "leaf \"params.odd\" of type Quaternion: no handler is registered for this type; known types: LazyTensor, None, "
            "dict, float, int, list, str, tuple");
}

TEST(ResolveLeaves, RefusesAValueOfAnotherTypeThanTheLeafSays) {
  for (const Leaf& leaf : {Leaf{{{"a"}}, "int", 5}, Leaf{{{"a"}}, "LazyTensor", std::shared_ptr<const LazyTensor>()},
                           Leaf{{{"a"}}, "str", "chars"}})
    EXPECT_EQ(resolve_leaves(LeafHandlerRegistry::standard(), std::span(&leaf, 1)).error().kind(),
              ErrorKind::kInvalidArgument);
}

TEST(ResolveLeaves, GivesEveryStandardLeafItsRecordedType) {
  const Leaf leaves[] = {tensor_leaf({{"t"}}, some_tensor()), int_leaf({{"i"}}, 7), {{{"f"}}, "float", 0.5},
                         {{{"s"}}, "str", std::string("x")},    empty_dict_leaf({{"d"}}), {{{"l"}}, "list", {}},
                         {{{"u"}}, "tuple", {}},                {{{"n"}}, "None", {}}};
  auto resolved = resolve_leaves(LeafHandlerRegistry::standard(), leaves);
  ASSERT_TRUE(resolved) << resolved.error().message();
  std::vector<std::string> types;
  for (const ResolvedLeaf& leaf : *resolved) types.push_back(leaf.value_type);
  EXPECT_THAT(types, testing::ElementsAre("np.ndarray", "scalar", "scalar", "string", "Dict", "List", "Tuple", "None"));
  EXPECT_EQ(std::get<int64_t>((*resolved)[1].content), 7);
  EXPECT_EQ(std::get<double>((*resolved)[2].content), 0.5);
  EXPECT_EQ(std::get<std::string>((*resolved)[3].content), "x");
}

TEST(CheckpointablesRegistry, LooksUpItemsLocallyAndThenGlobally) {
  auto global = resolve_tree_handler(nullptr, "items");
  ASSERT_TRUE(global) << global.error().message();
  EXPECT_EQ((*global)->type, kTreeHandlerType);

  CheckpointablesRegistry including(true), alone(false);
  EXPECT_EQ(*resolve_tree_handler(&including, "items"), *global);
  auto missing = resolve_tree_handler(&alone, "items");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("no handler is registered for the checkpointable \"items\""));

  ASSERT_TRUE(including.add("items", {"mine", LeafHandlerRegistry::standard()}));
  EXPECT_FALSE(including.add("items", {"again", LeafHandlerRegistry::standard()}));
  EXPECT_EQ((*resolve_tree_handler(&including, "items"))->type, "mine");
  EXPECT_EQ((*resolve_tree_handler(nullptr, "items"))->type, kTreeHandlerType);
  EXPECT_THAT(including.names(), testing::ElementsAre("items"));
}

TEST(CheckpointablesRegistry, OfTheCallerStillGetsLazyTensors) {
  CheckpointablesRegistry own(false);
  LeafHandlerRegistry leaves;
  ASSERT_TRUE(leaves.add("Pair", std::make_shared<PairHandler>("np.ndarray")));
  ASSERT_TRUE(own.add("items", {"mine", leaves}));
  auto handler = resolve_tree_handler(&own, "items");
  ASSERT_TRUE(handler);
  const Leaf leaf = tensor_leaf({{"t"}}, some_tensor());
  EXPECT_TRUE(resolve_leaves((*handler)->leaves, std::span(&leaf, 1)));
  EXPECT_NE((*handler)->leaves.find("Pair"), nullptr);
  const Leaf number = int_leaf({{"i"}}, 1);
  EXPECT_FALSE(resolve_leaves((*handler)->leaves, std::span(&number, 1)));
}

}  // namespace
}  // namespace maxport::orbax
