// How many chunks whole models are cut into, from their plans at full size; no weights are read.
#include <gtest/gtest.h>

#include "engine/grid.h"
#include "maxtext/catalog.h"
#include "maxtext/sharding.h"
#include "models/family.h"

namespace maxport::engine {
namespace {

struct Counts {
  int64_t chunks = 0;
  int64_t largest_chunk = 0;  // bytes
  int64_t largest_band = 0;   // bytes
};

Counts count(const Json& config_json, bool scanned, int devices) {
  auto config = huggingface::ConfigRoles::create(config_json, "config");
  EXPECT_TRUE(config) << config.error().message();
  auto family = models::family_of(*config);
  EXPECT_TRUE(family) << family.error().message();
  models::MaxTextLayout layout;
  layout.scan_layers = scanned;
  auto map = models::parameter_map(**family, {*config, layout, nullptr});
  EXPECT_TRUE(map) << map.error().message();
  auto plan = plan::build(*map);
  EXPECT_TRUE(plan) << plan.error().message();
  Counts out;
  for (const plan::Leaf& leaf : plan->leaves) {
    const ChunkGrid grid = choose_grid(*plan, leaf, {chunk_bytes_for(*plan), 2, maxtext::shard_axis(leaf.shape, devices).value_or(-1), devices});
    out.chunks += element_count(grid.counts(leaf.shape));
    out.largest_chunk = std::max(out.largest_chunk, element_count(grid.chunk_shape) * 2);
    const std::vector<int64_t> origin(leaf.shape.size(), 0);
    out.largest_band = std::max(out.largest_band, element_count(grid.band_box(leaf.shape, origin).shape) * 2);
  }
  return out;
}

Json catalog_config(const char* name) {
  auto entry = maxtext::find_model(name);
  EXPECT_TRUE(entry) << entry.error().message();
  return (*entry)->hf_config;
}

TEST(ChunkCount, OfTheLargestLlamaIsBelowHalfAMillion) {
  for (bool scanned : {true, false})
    for (int devices : {1, 16, 64}) {
      const Counts counts = count(catalog_config("llama3.1-405b"), scanned, devices);
      EXPECT_LT(counts.chunks, 500'000) << scanned << " " << devices;
      EXPECT_LE(counts.largest_chunk, kLargeChunkBytes);
      EXPECT_LE(counts.largest_band, kMaximumBandBytes);
    }
}

TEST(ChunkCount, OfA135MModelIsBelowFiveThousand) {
  const Json smollm = {{"model_type", "llama"}, {"hidden_size", 576}, {"intermediate_size", 1536}, {"num_hidden_layers", 30},
                       {"num_attention_heads", 9}, {"num_key_value_heads", 3}, {"vocab_size", 49152}, {"rms_norm_eps", 1e-5},
                       {"rope_theta", 100000.0}, {"tie_word_embeddings", true}};
  for (bool scanned : {true, false})
    for (int devices : {1, 16, 256}) EXPECT_LT(count(smollm, scanned, devices).chunks, 5000) << scanned << " " << devices;
}

TEST(ChunkCount, StaysInBoundsForExpertModels) {
  for (const char* name : {"deepseek3-671b", "qwen3-235b-a22b", "gpt-oss-120b", "mixtral-8x22b"})
    for (bool scanned : {true, false}) {
      const Counts counts = count(catalog_config(name), scanned, 16);
      EXPECT_LT(counts.chunks, 1'500'000) << name;
      EXPECT_LE(counts.largest_chunk, kLargeChunkBytes) << name;
      EXPECT_LE(counts.largest_band, kMaximumBandBytes) << name;
    }
}

}  // namespace
}  // namespace maxport::engine
