#include "ocdbt/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ocdbt/frame.h"
#include "ocdbt/test_bytes.h"

namespace maxport::ocdbt {
namespace {

using testing::HasSubstr;

Manifest stock_manifest() {
  Manifest manifest;
  const Bytes uuid = from_hex("8346d9e1bb9dda3cf65995b5a2e56898");
  std::ranges::copy(uuid, manifest.config.uuid.begin());
  manifest.files = {{"", "d/0cd57be768ab76cb1fde556a1b12c031"}};
  manifest.versions = {{.generation = 1,
                        .root_height = 0,
                        .root = {.file = 0, .offset = 0, .length = 276},
                        .statistics = {.num_keys = 4, .num_tree_bytes = 276, .num_indirect_value_bytes = 2410},
                        .commit_time = 1796039082987373120}};
  return manifest;
}

TEST(Manifest, ReadsWhatStockWrote) {
  EXPECT_EQ(*decode_manifest(from_hex(kStockManifest)), stock_manifest());
  EXPECT_EQ(*decode_manifest(from_hex(kPlainManifest)), stock_manifest());
}

TEST(Manifest, HasTheBytesThatStockWrites) {
  EXPECT_EQ(hex(*encode_manifest(stock_manifest())), hex(from_hex(kStockManifest)));
  EXPECT_EQ(hex(*encode_frame(kManifestMagic, encode_manifest_body(stock_manifest()), std::nullopt)),
            hex(from_hex(kPlainManifest)));
}

TEST(Manifest, ReadsBackWhatItWrote) {
  Manifest manifest = stock_manifest();
  manifest.config.zstd_level.reset();
  manifest.config.max_inline_value_bytes = 0;
  manifest.config.max_decoded_node_bytes = UINT32_MAX;
  manifest.files = {{"", ""}, {"x/", "y"}};
  manifest.versions = {
      {.generation = 65, .root_height = 3, .root = {1, 5, 7}, .statistics = {1, 2, 3}, .commit_time = 4},
      {.generation = 80, .root_height = 0, .root = Location::missing(), .commit_time = UINT64_MAX}};
  manifest.version_nodes = {
      {.generation = 48, .location = {1, 9, 9}, .num_generations = 32, .commit_time = 1, .height = 2},
      {.generation = 64, .location = {1, 99, 9}, .num_generations = 16, .commit_time = 2, .height = 1}};
  EXPECT_EQ(*decode_manifest(*encode_manifest(manifest)), manifest);
}

TEST(Manifest, HoldsSettingsOnlyWhenItIsNumbered) {
  Manifest manifest;
  manifest.config.manifest_kind = ManifestKind::kNumbered;
  EXPECT_EQ(*decode_manifest(*encode_manifest(manifest)), manifest);
  Bytes body = encode_manifest_body(manifest);
  body.push_back({});
  EXPECT_THAT(decode_manifest_body(body).error().message(), HasSubstr("1 bytes follow the end of the body at offset"));
}

TEST(Manifest, RefusesEveryCutOfItsBody) {
  const Bytes body = encode_manifest_body(stock_manifest());
  for (size_t size = 0; size < body.size(); ++size) {
    const auto result = decode_manifest_body(ByteSpan(body).first(size));
    ASSERT_FALSE(result) << size;
    EXPECT_EQ(result.error().kind(), ErrorKind::kCorruptData);
  }
}

struct Damage {
  size_t offset;
  const char* bytes;
  const char* text;
};

TEST(Manifest, RefusesValuesThatCannotBe) {
  // The body of the stock manifest: 0 uuid, 16 kind, 17 max_inline, 19 max_decoded, 23 arity, 24 method, 25 level,
  // 29 table, 66 versions: count, generation, height, file, offset, length (2), keys, ...
  for (const Damage& damage : {
           Damage{16, "02", "manifest_kind at offset 16 is 2, expected 0 (single) or 1 (numbered)"},
           Damage{23, "00", "version_tree_arity_log2 at offset 23 is 0, expected 1 to 16"},
           Damage{23, "11", "version_tree_arity_log2 at offset 23 is 17, expected 1 to 16"},
           Damage{24, "02", "compression_method at offset 24 is 2, expected 0 (none) or 1 (zstd)"},
           Damage{25, "00010000", "the zstd level at offset 25 is 256, expected"},
           Damage{66, "00", "no version at offset 66, expected one at least"},
           Damage{66, "11", "17 versions stated at offset 66, at most"},
           Damage{66, "808080808020", "1099511627776 versions stated at offset 66, at most"},
           Damage{67, "00", "version 0 at offset 66 has generation 0, expected more than 0"},
           Damage{69, "01", "data file 1 named before offset 73, but the table has 1"},
           Damage{70, "ffffffffffffffff7f", "276 bytes from offset 9223372036854775807, named before offset 81, end"},
           Damage{70, "ffffffffffffffffff01", "276 bytes from offset 18446744073709551615"},
       }) {
    Bytes body = encode_manifest_body(stock_manifest());
    const Bytes bytes = from_hex(damage.bytes);
    const bool longer = bytes.size() > 4;
    body.erase(body.begin() + damage.offset, body.begin() + damage.offset + (longer ? 1 : bytes.size()));
    body.insert(body.begin() + damage.offset, bytes.begin(), bytes.end());
    const auto result = decode_manifest_body(body);
    ASSERT_FALSE(result) << damage.text;
    EXPECT_EQ(result.error().kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(result.error().message(), HasSubstr(damage.text));
  }
}

TEST(Manifest, RefusesVersionsOutOfOrderOrOfTwoBlocks) {
  const auto failure = [](std::vector<uint64_t> generations) {
    Manifest manifest = stock_manifest();
    manifest.versions.clear();
    for (const uint64_t generation : generations) {
      manifest.versions.push_back(stock_manifest().versions[0]);
      manifest.versions.back().generation = generation;
    }
    const auto result = decode_manifest_body(encode_manifest_body(manifest));
    return result ? "none" : result.error().message();
  };
  EXPECT_EQ(failure({77}), "none");
  EXPECT_EQ(failure({17, 32}), "none");
  EXPECT_THAT(failure({16, 17}), HasSubstr("reach from generation 16 to 17, expected none before 17"));
  EXPECT_THAT(failure({18, 18}), HasSubstr("has generation 18, expected more than 18"));
}

TEST(Manifest, RefusesAnEmptyVersionWithContent) {
  Manifest manifest = stock_manifest();
  manifest.versions[0].root = Location::missing();
  EXPECT_THAT(decode_manifest_body(encode_manifest_body(manifest)).error().message(),
              HasSubstr("has no root, but a height or statistics"));
}

TEST(Manifest, RefusesVersionNodesOutOfOrder) {
  const auto failure = [](uint64_t generation, uint8_t first_height, uint8_t second_height) {
    Manifest manifest = stock_manifest();
    manifest.version_nodes = {{.generation = 8, .location = {0, 1, 1}, .height = first_height},
                              {.generation = generation, .location = {0, 1, 1}, .height = second_height}};
    const auto result = decode_manifest_body(encode_manifest_body(manifest));
    return result ? "none" : result.error().message();
  };
  EXPECT_EQ(failure(16, 2, 1), "none");
  EXPECT_THAT(failure(8, 2, 1), HasSubstr("version node 1 at offset 86 has generation 8, which is out of order"));
  EXPECT_THAT(failure(16, 1, 1), HasSubstr("has height 1, expected less from node to node"));
  EXPECT_THAT(failure(16, 1, 0), HasSubstr("has height 0"));
}

}  // namespace
}  // namespace maxport::ocdbt
