#include "engine/grid.h"

#include <gtest/gtest.h>

namespace maxport::engine {
namespace {

using models::LayerGroup;
using models::ParameterMap;

plan::Plan plan_of(int64_t layers, int64_t emb, int64_t mlp, std::string pattern = "mlp emb -> emb mlp") {
  ParameterMap map;
  map.dimensions.set("emb", emb);
  map.dimensions.set("mlp", mlp);
  map.add(LayerGroup{"layers", "{layer}", 0, {{layers, 1}}, true}, "wi", "up", std::move(pattern));
  return *plan::build(map);
}

ChunkGrid grid_of(const plan::Plan& plan, int shard_axis, int devices) {
  return choose_grid(plan, plan.leaves[0], {chunk_bytes_for(plan), 2, shard_axis, devices});
}

int64_t bytes(const ChunkGrid& grid) { return element_count(grid.chunk_shape) * 2; }

TEST(Grid, CutsALargeTransposedMatrixIntoShardsByRowBlocks) {
  const plan::Plan plan = plan_of(126, 16384, 53248);
  const ChunkGrid grid = grid_of(plan, 0, 16);
  EXPECT_EQ(grid.chunk_shape[0], 1024);  // one of 16 shards
  EXPECT_EQ(grid.chunk_shape[1], 1);     // one source tensor
  EXPECT_EQ(53248 % grid.chunk_shape[2], 0);
  EXPECT_LE(bytes(grid), chunk_bytes_for(plan));
  EXPECT_GE(bytes(grid), chunk_bytes_for(plan) / 2);
  EXPECT_EQ(grid.band_axis, 0);
  const Box band = grid.band_box(plan.leaves[0].shape, Shape{3, 7, 2});
  EXPECT_EQ(band.shape, (Shape{16384, 1, grid.chunk_shape[2]}));
  EXPECT_LE(element_count(band.shape) * 2, kMaximumBandBytes);
}

TEST(Grid, MakesSmallChunksUnlessThereWouldBeTooMany) {
  const plan::Plan small = plan_of(32, 4096, 14336), large = plan_of(126, 16384, 53248);
  EXPECT_EQ(chunk_bytes_for(small), kSmallChunkBytes);
  EXPECT_EQ(chunk_bytes_for(large), kLargeChunkBytes);
  EXPECT_LE(bytes(grid_of(small, 0, 16)), kSmallChunkBytes);
  EXPECT_GT(bytes(grid_of(large, 0, 16)), kSmallChunkBytes);
  EXPECT_LE(element_count(large.leaves[0].shape) * 2 / kLargeChunkBytes, 4 * kMaximumSmallChunks);
}

TEST(Grid, PutsSeveralSmallLayersIntoOneChunk) {
  const plan::Plan plan = plan_of(30, 576, 768);
  const ChunkGrid grid = grid_of(plan, 0, 16);
  EXPECT_EQ(grid.chunk_shape, (Shape{576, 1, 768}));
  const plan::Plan small = plan_of(30, 128, 128);
  EXPECT_EQ(grid_of(small, 0, 16).chunk_shape, (Shape{128, 30, 128}));
  EXPECT_EQ(grid_of(small, 0, 16).band_axis, -1);
}

TEST(Grid, NeedsNoBandsForOneDevice) {
  const plan::Plan plan = plan_of(4, 4096, 14336);
  const ChunkGrid grid = grid_of(plan, -1, 1);
  EXPECT_EQ(grid.chunk_shape[0], 4096);
  EXPECT_EQ(grid.chunk_shape[1], 1);
  EXPECT_EQ(grid.band_axis, -1);
  EXPECT_LE(bytes(grid), chunk_bytes_for(plan));
  EXPECT_GE(bytes(grid), chunk_bytes_for(plan) / 2);
}

TEST(Grid, CutsRowsWithinShardsWhereRowsAreTheShardAxis) {
  const plan::Plan plan = plan_of(1, 4096, 128256, "mlp emb -> mlp emb");
  const ChunkGrid grid = grid_of(plan, 0, 16);
  EXPECT_EQ(128256 / 16 % grid.chunk_shape[0], 0);
  EXPECT_EQ(grid.chunk_shape[2], 4096);
  EXPECT_LE(bytes(grid), chunk_bytes_for(plan));
}

TEST(Grid, KeepsBandsWithinMemoryForManyDevices) {
  const plan::Plan plan = plan_of(2, 16384, 53248);
  const ChunkGrid grid = grid_of(plan, 0, 256);
  EXPECT_EQ(grid.chunk_shape[0] % 64, 0);
  EXPECT_LE(element_count(grid.band_box(plan.leaves[0].shape, Shape{0, 0, 0}).shape) * 2, kMaximumBandBytes);
}

// Whatever the shapes, every element lies in one chunk and along the shard axis no chunk straddles a shard partly.
TEST(Grid, RespectsShardsForManyShapes) {
  for (int64_t emb : {48, 576, 1024, 2048, 4096, 8192})
    for (int64_t mlp : {80, 1536, 5632, 11008, 28672})
      for (int devices : {1, 2, 4, 16, 32}) {
        const plan::Plan plan = plan_of(5, emb, mlp);
        const int axis = emb % devices == 0 ? 0 : -1;
        const ChunkGrid grid = grid_of(plan, axis, devices);
        for (int64_t extent : grid.chunk_shape) EXPECT_GE(extent, 1);
        EXPECT_LE(bytes(grid), chunk_bytes_for(plan));
        const Box band = grid.band_box(plan.leaves[0].shape, Shape(3));
        EXPECT_LE(element_count(band.shape) * 2, 16 * kSmallChunkBytes) << emb << " " << mlp << " " << devices;
        if (axis == 0 && devices > 1) {
          const int64_t shard = emb / devices, chunk = grid.chunk_shape[0];
          EXPECT_TRUE(shard % chunk == 0 || chunk % shard == 0) << emb << " " << mlp << " " << devices;
        }
      }
}

}  // namespace
}  // namespace maxport::engine
