// Every checkpoint that the stock tools wrote into tests/data/orbax_samples reads as they themselves read it.
#include <gmock/gmock.h>

#include <filesystem>

#include "base/digest.h"
#include "base/json.h"
#include "orbax/checkpoint.h"

namespace maxport::orbax {
namespace {

const std::string kSamples = std::string(MAXPORT_TEST_DATA) + "/orbax_samples";

std::vector<std::string> sample_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSamples))
    if (std::filesystem::exists(entry.path() / "expected.json")) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

Json expected_of(const std::string& name) {
  const std::string file = kSamples + "/" + name + "/expected.json";
  return *parse_json(*local_storage().read_text(file), file);
}

/// What a leaf is, in the words of expected.json.
Json described(const Checkpoint& checkpoint, const CheckpointLeaf& leaf) {
  if (leaf.kind == LeafKind::kString) return {{"str", *checkpoint.text(leaf)}};
  if (leaf.kind == LeafKind::kEmpty) {
    const std::map<std::string, std::string> names = {{"Dict", "dict"}, {"List", "list"}, {"None", "None"}};
    return {{"empty", names.at(leaf.value_type)}};
  }
  auto tensor = checkpoint.tensor(leaf);
  EXPECT_TRUE(tensor) << tensor.error().message();
  // Stock restores scalars as Python objects: bool, int or float.
  DType dtype = leaf.dtype;
  if (leaf.kind == LeafKind::kScalar && dtype != DType::kBool) dtype = is_floating(dtype) ? DType::kFloat64 : DType::kInt64;
  Bytes bytes(static_cast<size_t>(element_count(leaf.shape) * dtype_bytes(dtype)));
  auto status = (*tensor)->read(Box::whole(leaf.shape), dtype, bytes);
  EXPECT_TRUE(status) << status.error().message();
  return {{"shape", leaf.shape}, {"dtype", dtype_name(dtype)}, {"sha256", sha256_hex(bytes)}};
}

class Samples : public testing::TestWithParam<std::string> {};

TEST_P(Samples, ReadAsStockOrbaxReadsThem) {
  const Json expected = expected_of(GetParam());
  const std::string root = kSamples + "/" + GetParam();
  std::vector<std::string> paths = {root, join_path(root, expected["item_path"].get<std::string>())};
  if (expected["item_path"] == ".") paths.pop_back();
  for (const std::string& path : paths) {
    auto checkpoint = Checkpoint::open(local_storage(), path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    EXPECT_THAT((*checkpoint)->notes(), testing::IsEmpty());
    Json leaves = Json::object();
    for (const CheckpointLeaf& leaf : (*checkpoint)->leaves()) leaves[leaf.name] = described(**checkpoint, leaf);
    Json differences = Json::diff(expected["leaves"], leaves);
    EXPECT_EQ(differences, Json::array()) << differences.dump(1);
  }
}

INSTANTIATE_TEST_SUITE_P(Stock, Samples, testing::ValuesIn(sample_names()),
                         [](const auto& sample) { return sample.param; });

TEST(SampleTrees, AreAllThere) { EXPECT_EQ(sample_names().size(), 37u); }

TEST(SampleTrees, KeepListsScalarsAndStepMetadata) {
  auto mixed = *Checkpoint::open(local_storage(), kSamples + "/v0_pytree_mixed");
  const CheckpointLeaf* leaf = mixed->find("nested.list.1.x");
  ASSERT_NE(leaf, nullptr);
  EXPECT_EQ(leaf->path, (TreePath{{"nested", false}, {"list", false}, {"1", true}, {"x", false}}));
  EXPECT_EQ(mixed->find("nested.list"), nullptr);
  EXPECT_EQ(std::get<int64_t>(*mixed->scalar(*mixed->find("py_int"))), 7);
  EXPECT_EQ(std::get<double>(*mixed->scalar(*mixed->find("py_float"))), 1.25);
  EXPECT_FALSE(mixed->text(*mixed->find("py_int")));
  EXPECT_FALSE(mixed->scalar(*mixed->find("f32")));

  auto maxtext = *Checkpoint::open(local_storage(), kSamples + "/mt_ocdbt_zarr3_dev2_float32");
  EXPECT_EQ(maxtext->step_metadata().custom_metadata["scan_layers"], true);
  EXPECT_EQ(maxtext->path().step, 0);
  EXPECT_THAT(maxtext->path().items, testing::ElementsAre("items"));
  EXPECT_EQ(maxtext->find("step")->value_type, "scalar");
}

}  // namespace
}  // namespace maxport::orbax
