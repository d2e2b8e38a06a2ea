#include "models/parameter_map.h"

#include <gtest/gtest.h>

#include <bit>

namespace maxport::models {
namespace {

TEST(Matches, StarStandsForAnyRun) {
  EXPECT_TRUE(matches("*.rotary_emb.inv_freq", "model.layers.3.self_attn.rotary_emb.inv_freq"));
  EXPECT_TRUE(matches("lm_head.weight", "lm_head.weight"));
  EXPECT_TRUE(matches("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(matches("a*b", "ab_"));
  EXPECT_FALSE(matches("lm_head.weight", "lm_head.weigh"));
}

TEST(QueryScale, HasTheDocumentedBits) {
  for (auto [dim, s, back] : {std::tuple{64, 0x3E000000u, 0x41000000u},
                              {80, 0x3DE4F92Eu, 0x410F1BBDu},
                              {96, 0x3DD105ECu, 0x411CC471u},
                              {128, 0x3DB504F3u, 0x413504F3u},
                              {256, 0x3D800000u, 0x41800000u}}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(scale_query(dim).to_maxtext), s) << dim;
    EXPECT_EQ(std::bit_cast<uint32_t>(scale_query(dim).to_huggingface), back) << dim;
  }
}

TEST(EmbeddingScale, HasTheDocumentedBits) {
  for (auto [hidden, n, back] : {std::tuple{2304, 0x42400000u, 0x3CAAAAABu},
                                 {3584, 0x426F7751u, 0x3C88D677u},
                                 {4608, 0x4287C3B6u, 0x3C715BF0u},
                                 {2816, 0x42544395u, 0x3C9A5FB2u},
                                 {5376, 0x4292A476u, 0x3C5F7482u},
                                 {1536, 0x421CC471u, 0x3CD105EBu},
                                 {2560, 0x424A62C2u, 0x3CA1E89Bu}}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(scale_embedding(hidden).to_maxtext), n) << hidden;
    EXPECT_EQ(std::bit_cast<uint32_t>(scale_embedding(hidden).to_huggingface), back) << hidden;
  }
}

TEST(LayerGroup, NamesWhatItsFirstLayerHolds) {
  const LayerGroup layers{"decoder.layers", "model.layers.{layer}", 3, {{2, 1}}, true};
  EXPECT_EQ(layers.huggingface_name("mlp.gate.weight"), "model.layers.3.mlp.gate.weight");
}

TEST(ParameterMap, FindsTheRuleThatIgnoresATensor) {
  ParameterMap map;
  map.ignore("*.inv_freq", "rotary tables are computed");
  ASSERT_NE(map.find_ignored("x.inv_freq"), nullptr);
  EXPECT_EQ(map.find_ignored("x.inv_freq")->reason, "rotary tables are computed");
  EXPECT_EQ(map.find_ignored("x.weight"), nullptr);
}

TEST(ParameterMap, ContinuesTheNamesOfTheLayerGroup) {
  ParameterMap map;
  const LayerGroup layers{"decoder.layers", "model.layers.{layer}", 0, {{3, 1}}, true};
  EXPECT_EQ(layers.layer_count(), 3);
  const Rule& rule = map.add(layers, "mlp.wo.kernel", "mlp.down_proj.weight", "emb mlp -> mlp emb");
  EXPECT_EQ(rule.maxtext, "decoder.layers.mlp.wo.kernel");
  EXPECT_EQ(rule.parts[0].huggingface, "model.layers.{layer}.mlp.down_proj.weight");
}

}  // namespace
}  // namespace maxport::models
