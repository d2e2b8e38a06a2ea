#include "maxtext/tree_layout.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"

namespace maxport::maxtext {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LeafPath path(std::string_view slashes) {
  LeafPath out;
  while (!slashes.empty()) {
    const size_t at = std::min(slashes.find('/'), slashes.size());
    out.emplace_back(slashes.substr(0, at));
    slashes.remove_prefix(std::min(at + 1, slashes.size()));
  }
  return out;
}

CanonicalTree canonical(std::vector<std::string_view> leaves) {
  std::vector<LeafPath> paths;
  for (std::string_view leaf : leaves) paths.push_back(path(leaf));
  auto out = canonical_tree(paths);
  EXPECT_TRUE(out) << out.error().message();
  return out ? *out : CanonicalTree();
}

std::vector<std::string> names(const CanonicalTree& tree) {
  std::vector<std::string> out;
  for (const CanonicalLeaf& leaf : tree.parameters) out.push_back(leaf.name);
  return out;
}

/// The tree of a stored sample, whose expected.json joins keys by dots (none of these samples has a dot in a key).
CanonicalTree sample(const std::string& name) {
  std::ifstream file(std::string(MAXPORT_TEST_DATA "/orbax_samples/") + name + "/expected.json");
  const Json expected = Json::parse(file);
  std::vector<std::string> keys;
  for (const auto& [key, leaf] : expected.at("leaves").items()) {
    keys.push_back(key);
    std::ranges::replace(keys.back(), '.', '/');
  }
  return canonical({keys.begin(), keys.end()});
}

TEST(TreeLayout, BringsEveryLayoutOfTheSamplesToTheSameNames) {
  const CanonicalTree linen = sample("mt_ocdbt_zarr3_dev16_bfloat16");
  EXPECT_EQ(linen.layout, TreeLayout::kLinen);
  EXPECT_EQ(linen.parameters.size(), 12u);
  EXPECT_THAT(linen.skipped_roots, ElementsAre("opt_state", "step"));
  EXPECT_EQ(linen.scan_layers, true);
  const std::pair<std::string, TreeLayout> others[] = {{"linen_single_params", TreeLayout::kSingleParams},
                                                       {"nnx_sft", TreeLayout::kNnx},
                                                       {"nnx_rl_base", TreeLayout::kNnxUnderBase}};
  for (const auto& [name, layout] : others) {
    const CanonicalTree tree = sample(name);
    EXPECT_EQ(tree.layout, layout) << name;
    EXPECT_EQ(names(tree), names(linen)) << name;
    EXPECT_EQ(tree.scan_layers, true) << name;
    EXPECT_FALSE(tree.collections_known) << name;
  }
}

TEST(TreeLayout, ReadsListsOfLayersAsNumberedNames) {
  const CanonicalTree tree = sample("nnx_layerlist_unscanned");
  EXPECT_EQ(tree.scan_layers, false);
  EXPECT_THAT(names(tree), Contains("params/decoder.layers_1.mlp.wi_0.kernel"));
  EXPECT_THAT(names(tree), Contains("params/decoder.layers_0.self_attention.value.kernel")) << "'value' inside is a name";
  EXPECT_THAT(tree.notes, ElementsAre("layers/N is read as layers_N"));
}

TEST(TreeLayout, ReadsEverySpellingOfDenseLayers) {
  for (const char* spelling : {"dense_layers_0", "dense_layers/0", "dense_layer_0", "dense_layer/0"}) {
    const std::string leaf = std::string("params/params/decoder/") + spelling + "/mlp/wo/kernel";
    const CanonicalTree tree = canonical({leaf});
    EXPECT_THAT(names(tree), ElementsAre("params/decoder.dense_layers_0.mlp.wo.kernel")) << spelling;
    EXPECT_EQ(tree.scan_layers, false) << spelling;
  }
}

TEST(TreeLayout, LeavesOtherNumberedNamesAlone) {
  const CanonicalTree tree = canonical({"params/params/decoder/layers/layer_0/mlp/wo/kernel",
                                        "params/params/mtp_block/mtp_layer_1/mtp_1_projection/kernel"});
  EXPECT_THAT(names(tree), ElementsAre("params/decoder.layers.layer_0.mlp.wo.kernel",
                                       "params/mtp_block.mtp_layer_1.mtp_1_projection.kernel"));
}

TEST(TreeLayout, KeepsCollectionsApartAndScannedTreesWithSingleLayersScanned) {
  const CanonicalTree tree = canonical({"params/params/decoder/layers_0/mlp/MoeBlock_0/wo",
                                        "params/Tid2EidVar/decoder/layers_0/mlp/MoeBlock_0/tid2eid",
                                        "params/MoEBiasVar/decoder/scanned_blocks/layers_1/mlp/MoeBlock_0/gate/bias",
                                        "params/params/decoder/scanned_blocks/layers_1/mlp/MoeBlock_0/wo"});
  EXPECT_THAT(names(tree), ElementsAre("MoEBiasVar/decoder.scanned_blocks.layers_1.mlp.MoeBlock_0.gate.bias",
                                       "Tid2EidVar/decoder.layers_0.mlp.MoeBlock_0.tid2eid",
                                       "params/decoder.layers_0.mlp.MoeBlock_0.wo",
                                       "params/decoder.scanned_blocks.layers_1.mlp.MoeBlock_0.wo"));
  EXPECT_EQ(tree.scan_layers, true);
  EXPECT_EQ(tree.parameters[0].index, 2u);
}

TEST(TreeLayout, SkipsOptimizerStepAndRandomStateByName) {
  const CanonicalTree tree = canonical({"decoder/decoder_norm/scale/value", "decoder/dropout/rngs/params/key/value",
                                        "token_embedder/to_nnx__rngs/count/value", "step", "opt_state/1/0/mu/decoder/x"});
  EXPECT_THAT(names(tree), ElementsAre("params/decoder.decoder_norm.scale"));
  EXPECT_THAT(tree.skipped, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(tree.skipped_roots, ElementsAre("rngs", "step", "opt_state"));
  EXPECT_EQ(tree.scan_layers, std::nullopt);
  EXPECT_EQ(sample("v0_manager_trainstate_adamw").parameters.size(), 3u);
}

TEST(TreeLayout, ShowsTheTopOfATreeThatItDoesNotKnow) {
  const LeafPath leaves[] = {path("model/blocks/0/w"), path("model/head/w"), path("step\n")};
  auto out = canonical_tree(leaves);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(out.error().message(), HasSubstr("model {blocks, head}"));
  EXPECT_THAT(out.error().message(), testing::Not(HasSubstr("\n")));
  EXPECT_FALSE(canonical_tree({}));
}

TEST(TreeLayout, RefusesTwoLeavesOfOneName) {
  const LeafPath leaves[] = {path("params/params/decoder/layers_0/w"), path("params/params/decoder/layers/0/w")};
  auto out = canonical_tree(leaves);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(out.error().message(), HasSubstr("params/params/decoder/layers/0/w"));
}

TEST(TreeLayout, GivesTheLinenPathOfAName) {
  EXPECT_THAT(linen_path("params/decoder.layers_0.mlp.wo.kernel"),
              ElementsAre("params", "params", "decoder", "layers_0", "mlp", "wo", "kernel"));
  EXPECT_THAT(linen_path("MoEBiasVar/decoder.gate.bias"), ElementsAre("params", "MoEBiasVar", "decoder", "gate", "bias"));
}

TEST(TreeLayout, FindsTheScanFormAndObjectsToContradictions) {
  EXPECT_EQ(*resolve_scan_layers(false, {}, {}), false);
  EXPECT_EQ(*resolve_scan_layers({}, false, {}), false);
  EXPECT_EQ(*resolve_scan_layers({}, {}, false), false);
  EXPECT_EQ(*resolve_scan_layers({}, {}, {}), true);
  EXPECT_EQ(*resolve_scan_layers(true, true, true), true);
  EXPECT_THAT(resolve_scan_layers(true, {}, false).error().message(), HasSubstr("scan_layers=false was asked for"));
  EXPECT_THAT(resolve_scan_layers({}, true, false).error().message(), HasSubstr("its metadata tells"));
  EXPECT_THAT(resolve_scan_layers(true, false, {}).error().message(), HasSubstr("metadata says scan_layers=false"));
}

}  // namespace
}  // namespace maxport::maxtext
