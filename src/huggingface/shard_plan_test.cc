#include "huggingface/shard_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace maxport::huggingface {
namespace {

using safetensors::TensorSpec;
using testing::ElementsAre;

std::vector<TensorSpec> bytes(const std::vector<int64_t>& sizes) {
  std::vector<TensorSpec> specs;
  for (int64_t size : sizes) specs.push_back({fmt::format("t{}", specs.size()), DType::kUint8, {size}});
  return specs;
}

std::vector<std::vector<size_t>> split(const std::vector<int64_t>& sizes, uint64_t limit) {
  std::vector<std::vector<size_t>> files;
  const ShardPlan plan = plan_shards(bytes(sizes), limit).value();
  for (const ShardFile& file : plan.files) files.push_back(file.tensors);
  return files;
}

TEST(ParseShardSize, ReadsTheUnitsOfTheStockLibrary) {
  EXPECT_EQ(parse_shard_size("5GB").value(), 5'000'000'000u);
  EXPECT_EQ(parse_shard_size("50gb").value(), 50'000'000'000u);
  EXPECT_EQ(parse_shard_size("1.5 MB").value(), 1'500'000u);
  EXPECT_EQ(parse_shard_size("7KB").value(), 7000u);
  EXPECT_EQ(parse_shard_size("1TB").value(), 1'000'000'000'000u);
  EXPECT_EQ(parse_shard_size("12345").value(), 12345u);
  for (const char* text :
       {"", "GB", "5GiB", "-1GB", "0", "0GB", "5XB", "nan", "infGB", "1e30GB", "5 GB x", "0x10", "99999999999TB"}) {
    auto size = parse_shard_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().kind(), ErrorKind::kInvalidArgument);
  }
}

// The expected lists were made by split_state_dict_into_shards_factory of huggingface_hub 2.4.0.
TEST(PlanShards, SplitsAsTheStockLibrary) {
  EXPECT_THAT(split({6, 6, 2, 6, 2, 2}, 10), ElementsAre(ElementsAre(0), ElementsAre(1, 2), ElementsAre(3, 4, 5)));
  EXPECT_THAT(split({5, 5, 5}, 10), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_THAT(split({1, 20, 1, 30, 1}, 10), ElementsAre(ElementsAre(1), ElementsAre(3), ElementsAre(0, 2, 4)));
  EXPECT_THAT(split({20}, 10), ElementsAre(ElementsAre(0)));
  EXPECT_THAT(split({10, 0, 10}, 10), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

TEST(PlanShards, NamesOneFilePlainlyAndSeveralByNumber) {
  EXPECT_EQ(plan_shards(bytes({1, 2}), 10)->files[0].name, "model.safetensors");
  const auto plan = plan_shards(bytes({6, 6, 6}), 10, "adapter_model").value();
  EXPECT_EQ(plan.files[1].name, "adapter_model-00002-of-00003.safetensors");
  EXPECT_EQ(plan.places[2].file, 2u);
  EXPECT_EQ(plan.total_size, 18u);
  EXPECT_EQ(plan.total_parameters, 18u);
}

// R11
TEST(PlanShards, ClosesAFileBeforeItsHeaderPassesTheLimit) {
  const std::vector<TensorSpec> specs = bytes(std::vector<int64_t>(100, 1));
  const auto plan = plan_shards(specs, 1'000'000, "model", 2000).value();
  EXPECT_GT(plan.files.size(), 3u);
  size_t count = 0;
  for (const ShardFile& file : plan.files) {
    std::vector<TensorSpec> own;
    for (size_t i : file.tensors) own.push_back(specs[i]);
    EXPECT_LE(safetensors::layout_file(own)->header.size(), 2000u);
    count += own.size();
  }
  EXPECT_EQ(count, 100u);
}

TEST(PlanShards, RefusesNothingAndTooMuch) {
  EXPECT_FALSE(plan_shards({}, 10));
  const std::vector<TensorSpec> huge = {{"a", DType::kFloat64, {INT64_MAX}}};
  EXPECT_THAT(plan_shards(huge, 10).error().message(), testing::HasSubstr("tensor \"a\""));
  EXPECT_FALSE(plan_shards(bytes({INT64_MAX, INT64_MAX, INT64_MAX}), 10));
}

TEST(IndexJson, IsLaidOutAsTransformersWritesIt) {
  const auto specs = bytes({6, 6});
  EXPECT_EQ(file_text(index_json(plan_shards(specs, 10).value(), specs)), R"({
  "metadata": {
    "total_parameters": 12,
    "total_size": 12
  },
  "weight_map": {
    "t0": "model-00001-of-00002.safetensors",
    "t1": "model-00002-of-00002.safetensors"
  }
}
)");
}

}  // namespace
}  // namespace maxport::huggingface
