#include "models/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "maxtext/catalog.h"

namespace maxport::models {
namespace {

using testing::HasSubstr;

huggingface::ConfigRoles roles(Json config) {
  return huggingface::ConfigRoles::create(std::move(config), "test").value();
}

std::vector<int64_t> layers_of(const LayerGroup& group) {
  std::vector<int64_t> layers{group.first_layer};
  for (const LayerGroup::Loop& loop : group.loops) {
    std::vector<int64_t> next;
    for (int64_t layer : layers)
      for (int64_t i = 0; i < loop.count; ++i) next.push_back(layer + i * loop.stride);
    layers = std::move(next);
  }
  return layers;
}

TEST(PeriodicLayers, StackBlocksAndKeepTheRestApart) {
  const auto config = roles(Json::object());
  const MaxTextLayout layout;
  const auto layers = periodic_layers({config, layout}, 8, 3, "decoder.blocks", "layers.{layer}");
  ASSERT_EQ(layers.local.size(), 2u);
  EXPECT_EQ(layers.local[0].maxtext, "decoder.blocks.local_layers");
  EXPECT_EQ(layers_of(layers.local[0]), (std::vector<int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(layers.local[1].maxtext, "decoder.layers_remainder.local_layers");
  EXPECT_EQ(layers_of(layers.local[1]), (std::vector<int64_t>{6, 7}));
  ASSERT_EQ(layers.global.size(), 1u);
  EXPECT_EQ(layers.global[0].maxtext, "decoder.blocks.global_layer");
  EXPECT_EQ(layers_of(layers.global[0]), (std::vector<int64_t>{2, 5}));
  EXPECT_TRUE(layers.global[0].stacked);
}

TEST(PeriodicLayers, StandAloneUnscanned) {
  const auto config = roles(Json::object());
  MaxTextLayout layout;
  layout.scan_layers = false;
  const auto layers = periodic_layers({config, layout}, 2, 3, "decoder.blocks", "layers.{layer}");
  ASSERT_EQ(layers.local.size(), 1u);
  EXPECT_EQ(layers.local[0].maxtext, "decoder.layers_{layer}");
  EXPECT_FALSE(layers.local[0].stacked);
  EXPECT_TRUE(layers.global.empty());
}

TEST(LayerTypes, MustFollowThePeriod) {
  const auto good = roles({{"num_hidden_layers", 4}, {"layer_types", {"a", "b", "a", "b"}}});
  EXPECT_TRUE(check_layer_types(good, 2, "a", "b"));
  const auto bad = roles({{"num_hidden_layers", 4}, {"layer_types", {"a", "b", "b", "b"}}});
  const auto checked = check_layer_types(bad, 2, "a", "b");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(checked.error().message(), HasSubstr("layer_types[2] is \"b\""));
}

TEST(Sizes, MustBePositiveAndNotAbsurd) {
  Dimensions dims;
  EXPECT_TRUE(read_sizes(roles({{"hc_mult", 4}}), {{"stream", "hc_mult"}}, dims));
  EXPECT_EQ(dims.get("stream").value(), 4);
  const auto zero = read_sizes(roles({{"hc_mult", 0}}), {{"stream", "hc_mult"}}, dims);
  ASSERT_FALSE(zero);
  EXPECT_EQ(zero.error().kind(), ErrorKind::kCorruptData);
  const auto huge = read_sizes(roles({{"hc_mult", int64_t{1} << 40}}), {{"stream", "hc_mult"}}, dims);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().kind(), ErrorKind::kResourceLimit);
}

Result<ParameterMap> map_of(std::string_view model, const Json& changes, const MaxTextLayout& layout) {
  const maxtext::CatalogEntry* entry = maxtext::find_model(model).value();
  Json config = entry->hf_config;
  config.merge_patch(changes);
  const auto checked = roles(config);
  return parameter_map(*find_family(entry->family), {checked, layout});
}

TEST(Families, RefuseWhatMaxTextCannotRepresentAndSayWhy) {
  MaxTextLayout scanned, ahead, pictures;
  ahead.mtp_num_layers = 1;
  pictures.scan_layers = false;
  pictures.use_multimodal = true;
  struct Case {
    std::string_view model;
    Json changes;
    MaxTextLayout layout;
    std::string_view why;
  };
  for (const Case& refused : {
           Case{"gemma4-e2b", {}, scanned, "layers share keys and values"},
           Case{"qwen3-vl-2b", {}, scanned, "deepstack"},
           Case{"llama3.1-8b", {}, ahead, "mtp_num_layers=1"},
           Case{"gemma4-e2b", {}, pictures, "text only"},
           Case{"deepseek3-671b", {{"moe_layer_freq", 2}}, scanned, "moe_layer_freq is 2"},
           Case{"deepseek3-671b", {{"attention_bias", true}}, scanned, "attention_bias is true"},
           Case{"deepseek4-284b", {{"num_hash_layers", 2}}, scanned, "convert with scan_layers=false"},
           Case{"qwen3-next-80b-a3b", {{"mlp_only_layers", {1}}}, scanned, "mlp_only_layers"},
           Case{"qwen3-next-80b-a3b", {{"full_attention_interval", 6}}, scanned, "layer_types[3]"},
       }) {
    const auto map =
        map_of(refused.model, refused.changes.is_null() ? Json::object() : refused.changes, refused.layout);
    ASSERT_FALSE(map) << refused.why;
    EXPECT_EQ(map.error().kind(), ErrorKind::kUnsupported) << refused.why;
    EXPECT_THAT(map.error().message(), HasSubstr(std::string(refused.why)));
  }
}

TEST(Families, AreToldApartWhereTheyShareAModelType) {
  for (std::string_view model : {"gemma4-26b", "gemma4-e4b", "deepseek4-tiny", "qwen3.5-397b-a17b"}) {
    const maxtext::CatalogEntry* entry = maxtext::find_model(model).value();
    EXPECT_EQ(family_of(roles(entry->hf_config)).value()->name, entry->family);
  }
}

TEST(Gemma4, ReadsSizesOfGlobalLayersFromEitherSpelling) {
  const Json stated = {{"text_config", {{"num_global_key_value_heads", 2}, {"global_head_dim", 512}}}};
  const Json by_layer = {{"text_config",
                          {{"num_global_key_value_heads", nullptr},
                           {"global_head_dim", nullptr},
                           {"per_layer_config",
                            {{"05", {{"head_dim", 512}, {"num_key_value_heads", 2}}},
                             {"11", {{"head_dim", 512}, {"num_key_value_heads", 2}}}}}}}};
  for (const Json& spelling : {stated, by_layer}) {
    const auto map = map_of("gemma4-26b", spelling, {});
    ASSERT_TRUE(map) << map.error().message();
    EXPECT_EQ(map->dimensions.get("global_dim").value(), 512);
    EXPECT_EQ(map->dimensions.get("global_kv_heads").value(), 2);
  }
  Json uneven = by_layer;
  uneven["text_config"]["per_layer_config"]["11"]["head_dim"] = 256;
  EXPECT_FALSE(map_of("gemma4-26b", uneven, {}));
}

}  // namespace
}  // namespace maxport::models
