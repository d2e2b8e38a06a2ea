#include "maxtext/sharding.h"

#include <gmock/gmock.h>

namespace maxport::maxtext {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::optional<std::string>> spec(Shape shape, int devices) { return partition_spec(shape, devices); }

TEST(Sharding, CutsTheFirstAxisThatDividesByTheDevices) {
  EXPECT_EQ(shard_axis(Shape{64, 3, 48}, 16), 0);
  EXPECT_EQ(shard_axis(Shape{3, 64, 48}, 16), 1);
  EXPECT_EQ(shard_axis(Shape{3, 5, 48}, 16), 2);
  EXPECT_EQ(shard_axis(Shape{3, 5, 7}, 16), std::nullopt);
  EXPECT_EQ(shard_axis(Shape{}, 16), std::nullopt);
  EXPECT_EQ(shard_axis(Shape{64}, 1), std::nullopt);
}

TEST(Sharding, GivesTheChunkShapesOfMaxTextsOwnOutput) {
  EXPECT_EQ(shard_shape(Shape{8, 8, 32, 256}, 16), (Shape{8, 8, 2, 256})) << "formats.md 3.9";
  EXPECT_EQ(shard_shape(Shape{151936, 1024}, 16), (Shape{9496, 1024}));
  EXPECT_EQ(shard_shape(Shape{3, 5}, 16), (Shape{3, 5}));
  EXPECT_EQ(shard_shape(Shape{}, 2), Shape{});
}

TEST(Sharding, RecordsAnAxisOnlyWhenItIsTheFirstOrTheSecond) {
  EXPECT_THAT(spec({64, 3}, 16), ElementsAre(std::optional<std::string>("checkpoint_sharding_axis")));
  EXPECT_THAT(spec({3, 64}, 16), ElementsAre(std::nullopt, std::optional<std::string>("checkpoint_sharding_axis")));
  EXPECT_THAT(spec({3, 5, 64}, 16), ElementsAre(std::nullopt)) << "replicated, though chunks are cut";
  EXPECT_THAT(spec({}, 16), IsEmpty());
  EXPECT_EQ(partition_axis(Shape{3, 5, 64}, 16), std::nullopt);
}

}  // namespace
}  // namespace maxport::maxtext
