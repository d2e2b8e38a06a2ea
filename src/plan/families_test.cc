// Every small golden model: the map of its family against the tensors that its file really holds, and the leaves that
// follow from them against those of the reference, down to the digest of their bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/digest.h"
#include "huggingface/model_directory.h"
#include "maxtext/catalog.h"
#include "models/family.h"
#include "plan/check.h"
#include "storage/storage.h"
#include "tensor/element_op.h"

namespace maxport::plan {
namespace {

const std::filesystem::path kGoldens = MAXPORT_TEST_DATA "/goldens";

Json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return Json::parse(file);
}

class HeldNames : public models::SourceNames {
 public:
  explicit HeldNames(const huggingface::ModelDirectory& directory) : directory_(directory) {}
  bool contains(std::string_view name) const override { return directory_.tensors().contains(name); }
  std::optional<Shape> shape(std::string_view name) const override {
    const auto found = directory_.tensors().find(name);
    return found == directory_.tensors().end() ? std::nullopt : std::optional(found->second.info->shape);
  }
  bool contains_prefix(std::string_view prefix) const override {
    const auto found = directory_.tensors().lower_bound(prefix);
    return found != directory_.tensors().end() && found->first.starts_with(prefix);
  }

 private:
  const huggingface::ModelDirectory& directory_;
};

std::string argument(const Json& golden, const std::string& key, const std::string& fallback) {
  for (const Json& argument : golden["args"])
    if (argument.get<std::string>().starts_with(key + "=")) return argument.get<std::string>().substr(key.size() + 1);
  return fallback;
}

models::MaxTextLayout layout_of(const Json& golden) {
  models::MaxTextLayout layout;
  layout.scan_layers = argument(golden, "scan_layers", "true") == "true";
  layout.use_multimodal = argument(golden, "use_multimodal", "false") == "true";
  layout.use_audio = argument(golden, "use_audio", "true") == "true";
  layout.vocab_size = std::stoll(argument(golden, "vocab_size", "0"));
  return layout;
}

/// A golden with its source opened and planned.
struct Planned {
  Json golden;
  std::unique_ptr<huggingface::ModelDirectory> directory;
  models::ParameterMap map;
  Plan plan;
};

Result<Planned> open_golden(const std::string& model, const std::string& tag) {
  Planned out{read_json(kGoldens / model / tag / "expected.json"), nullptr, {}, {}};
  MAXPORT_ASSIGN_OR_RETURN(out.directory, huggingface::ModelDirectory::open(local_storage(), kGoldens / model / "hf"));
  const models::MaxTextLayout layout = layout_of(out.golden);
  const HeldNames names(*out.directory);
  MAXPORT_ASSIGN_OR_RETURN(const models::Family* family, models::family_of(out.directory->roles()));
  EXPECT_EQ(family->name, maxtext::catalog_family(model));
  MAXPORT_ASSIGN_OR_RETURN(out.map, models::parameter_map(*family, {out.directory->roles(), layout, &names}));
  MAXPORT_ASSIGN_OR_RETURN(out.plan, build(out.map));
  return out;
}

/// The bytes of one leaf, made element by element.
std::vector<std::byte> make_leaf(const Planned& model, const Leaf& leaf, DType save_dtype, DType dtype) {
  const auto bytes = static_cast<size_t>(dtype_bytes(dtype));
  std::vector<std::byte> out(static_cast<size_t>(element_count(leaf.shape)) * bytes);
  if (leaf.fill)
    for (size_t at = 0; at < out.size(); at += bytes)
      apply(ElementOp::convert(DType::kFloat32, dtype), std::as_bytes(std::span(&*leaf.fill, 1)),
            std::span(out).subspan(at, bytes));
  for (const Link& link : model.plan.links_of(leaf)) {
    const auto tensor = model.directory->find(model.plan.tensors[link.tensor].name);
    std::vector<std::byte> stored(
        static_cast<size_t>(element_count(tensor->info->shape) * dtype_bytes(tensor->info->dtype)));
    EXPECT_TRUE(model.directory->read(*tensor, 0, stored));
    std::vector<std::byte> converted(stored.size() / static_cast<size_t>(dtype_bytes(tensor->info->dtype)) * bytes);
    apply({tensor->info->dtype, save_dtype, static_cast<ElementOp::Kind>(leaf.arithmetic.kind),
           leaf.arithmetic.to_maxtext, dtype},
          stored, converted);
    const Walk& walk = model.plan.walks[link.walk];
    std::vector<int64_t> at(walk.extents.size(), 0);
    for (bool more = true; more;) {
      int64_t from = link.huggingface_offset, to = link.maxtext_offset;
      for (size_t i = 0; i < at.size(); ++i)
        from += at[i] * walk.huggingface_strides[i], to += at[i] * walk.maxtext_strides[i];
      std::copy_n(converted.data() + static_cast<size_t>(from) * bytes, bytes,
                  out.data() + static_cast<size_t>(to) * bytes);
      more = false;
      for (size_t i = at.size(); i-- > 0;) {
        if (++at[i] < walk.extents[i]) {
          more = true;
          break;
        }
        at[i] = 0;
      }
    }
  }
  return out;
}

DType type_of(const Planned& model, const Leaf& leaf, DType save_dtype) {
  const auto links = model.plan.links_of(leaf);
  if (links.empty()) return DType::kFloat32;
  return stored_dtype(model.directory->find(model.plan.tensors[links[0].tensor].name)->info->dtype, save_dtype,
                      leaf.arithmetic);
}

using Golden = std::pair<std::string, std::string>;  // model, tag
class GoldenModel : public testing::TestWithParam<Golden> {};

TEST_P(GoldenModel, AccountsForEveryTensorOfItsFile) {
  auto model = open_golden(GetParam().first, GetParam().second);
  ASSERT_TRUE(model) << model.error().message();
  std::vector<SourceTensor> source;
  for (const auto& [name, entry] : model->directory->tensors())
    source.push_back({std::string(name), entry.info->dtype, entry.info->shape});
  auto account = check(model->plan, model->map, source);
  ASSERT_TRUE(account) << account.error().message();
  EXPECT_TRUE(account->good()) << to_error(*account).message();
  EXPECT_EQ(account->tensors_used + account->ignored.size(), source.size());
  EXPECT_EQ(account->leaves_filled, model->plan.leaves.size());
}

TEST_P(GoldenModel, GivesTheLeavesOfTheReference) {
  auto model = open_golden(GetParam().first, GetParam().second);
  ASSERT_TRUE(model) << model.error().message();
  std::map<std::string, Json> expected;
  for (const auto& [name, leaf] : model->golden["leaves"].items())
    if (name.starts_with("params.")) expected[name] = leaf;
  const bool to_bfloat16 = model->golden["save_dtype"] == "bfloat16";
  const DType save_dtype = to_bfloat16 ? DType::kBfloat16 : DType::kFloat32;
  EXPECT_EQ(model->plan.leaves.size(), expected.size());
  for (const Leaf& leaf : model->plan.leaves) {
    const auto found = expected.find(leaf.checkpoint_name());
    if (found == expected.end()) {
      ADD_FAILURE() << "not a leaf of the reference: " << leaf.checkpoint_name();
      continue;
    }
    const Json golden = found->second;
    expected.erase(found);
    const DType dtype = type_of(*model, leaf, save_dtype);
    EXPECT_EQ(Json(leaf.shape), golden["shape"]) << leaf.path;
    EXPECT_EQ(Json(dtype_name(dtype)), golden["dtype"]) << leaf.path;
    EXPECT_EQ(Json(sha256_hex(make_leaf(*model, leaf, save_dtype, dtype))), golden["sha256"]) << leaf.path;
  }
  for (const auto& [name, leaf] : expected) ADD_FAILURE() << "missing: " << name;
}

/// The account of a golden whose file holds further tensors.
Account account_with(const Planned& model, const std::vector<SourceTensor>& further) {
  std::vector<SourceTensor> source = further;
  for (const auto& [name, entry] : model.directory->tensors())
    source.push_back({std::string(name), entry.info->dtype, entry.info->shape});
  auto account = check(model.plan, model.map, source);
  EXPECT_TRUE(account) << account.error().message();
  return *account;
}

TEST(SharedKeys, SurplusOnesAreRefusedWithTheLayerTheyComeFrom) {
  auto model = open_golden("gemma4-e2b", "unscan-bfloat16");
  ASSERT_TRUE(model) << model.error().message();
  const auto account =
      account_with(*model, {{"model.language_model.layers.7.self_attn.k_proj.weight", DType::kBfloat16, {16, 80}},
                            {"model.language_model.layers.9.self_attn.v_proj.weight", DType::kBfloat16, {32, 80}}});
  ASSERT_EQ(account.faults.size(), 2u);
  EXPECT_THAT(account.faults[0].text, testing::HasSubstr("layer 7 shares keys and values with layer 5"));
  EXPECT_THAT(account.faults[1].text, testing::HasSubstr("layer 9 shares keys and values with layer 4"));
}

TEST(PredictionLayers, AreLeftOutByDefaultButNotMoreThanTheModelHas) {
  auto model = open_golden("deepseek3-671b", "patched-scan-bfloat16");
  ASSERT_TRUE(model) << model.error().message();
  auto account = account_with(*model, {{"model.layers.3.eh_proj.weight", DType::kBfloat16, {80, 160}}});
  EXPECT_TRUE(account.good()) << to_error(account).message();
  ASSERT_EQ(account.ignored.size(), 1u);
  EXPECT_EQ(account.ignored[0].reason, "prediction layer; mtp_num_layers is 0");
  account = account_with(*model, {{"model.layers.4.eh_proj.weight", DType::kBfloat16, {80, 160}}});
  EXPECT_FALSE(account.good());
}

class WithRepeats : public HeldNames {
 public:
  using HeldNames::HeldNames;
  bool contains(std::string_view name) const override {
    return name == "model.layers.3.embed_tokens.weight" || name == "model.layers.3.shared_head.head.weight" ||
           HeldNames::contains(name);
  }
};

TEST(PredictionLayers, GoToMaxTextUnderNamesThatCountFromOne) {
  auto model = open_golden("deepseek3-671b", "patched-scan-bfloat16");
  ASSERT_TRUE(model) << model.error().message();
  models::MaxTextLayout layout = layout_of(model->golden);
  layout.mtp_num_layers = 1;
  const WithRepeats names(*model->directory);
  auto map = models::parameter_map(*models::find_family("deepseek3"), {model->directory->roles(), layout, &names});
  ASSERT_TRUE(map) << map.error().message();
  auto plan = build(*map);
  ASSERT_TRUE(plan) << plan.error().message();
  std::map<std::string, std::string> sources;
  for (const Leaf& leaf : plan->leaves)
    if (leaf.path.starts_with("mtp_block")) sources[leaf.path] = plan->tensors[plan->links_of(leaf)[0].tensor].name;
  EXPECT_EQ(sources.size(), 21u);
  EXPECT_EQ(sources["mtp_block.mtp_layer_1.mtp_1_projection.kernel"], "model.layers.3.eh_proj.weight");
  EXPECT_EQ(sources["mtp_block.mtp_layer_1.mtp_1_embedding_norm.scale"], "model.layers.3.enorm.weight");
  EXPECT_EQ(sources["mtp_block.mtp_layer_1.mtp_1_hidden_state_norm.scale"], "model.layers.3.hnorm.weight");
  EXPECT_EQ(sources["mtp_block.mtp_layer_1.mtp_1_final_norm.scale"], "model.layers.3.shared_head.norm.weight");
  ASSERT_EQ(map->equal.size(), 2u);
  EXPECT_EQ(map->equal[0].kept, "model.embed_tokens.weight");
  EXPECT_EQ(map->equal[1].dropped, "model.layers.3.shared_head.head.weight");

  layout.mtp_num_layers = 2;
  map = models::parameter_map(*models::find_family("deepseek3"), {model->directory->roles(), layout, &names});
  ASSERT_FALSE(map);
  EXPECT_THAT(map.error().message(), testing::HasSubstr("has 1 prediction layers (num_nextn_predict_layers)"));
}

std::vector<Golden> goldens() {
  std::vector<Golden> out;
  for (const auto& model : std::filesystem::directory_iterator(kGoldens)) {
    const std::string name = model.path().filename();
    if (!model.is_directory() || models::find_family(maxtext::catalog_family(name)) == nullptr) continue;
    for (const auto& tag : std::filesystem::directory_iterator(model.path()))
      if (std::filesystem::exists(tag.path() / "expected.json") && !tag.path().filename().string().starts_with("lora-"))
        out.emplace_back(name, tag.path().filename());
  }
  std::ranges::sort(out);
  return out;
}

std::string test_name(const testing::TestParamInfo<Golden>& info) {
  std::string name = info.param.first + "_" + info.param.second;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Goldens, GoldenModel, testing::ValuesIn(goldens()), test_name);

}  // namespace
}  // namespace maxport::plan
