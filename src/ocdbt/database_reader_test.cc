// Reads databases that stock TensorStore and Orbax wrote, and hand-made damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/json.h"
#include "ocdbt/btree_node.h"
#include "ocdbt/database.h"
#include "ocdbt/frame.h"
#include "ocdbt/manifest.h"
#include "storage/memory_storage.h"

namespace maxport::ocdbt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string data_path(std::string_view name) { return join_path(MAXPORT_TEST_DATA, name); }

std::vector<std::string> keys(KeyValueReader& reader, std::string_view prefix) {
  std::vector<std::string> found;
  const auto result = reader.list(prefix, [&](std::string_view key, const ValueLocation&) -> Result<> {
    found.emplace_back(key);
    return {};
  });
  EXPECT_TRUE(result) << result.error().message();
  return found;
}

TEST(StockDatabases, HoldForUsWhatTheyHoldForTensorStore) {
  const Json expected =
      *parse_json(*local_storage().read_text(data_path("ocdbt/expected.json")), "ocdbt/expected.json");
  ASSERT_GT(expected.size(), 40u);
  for (const auto& [name, entry] : expected.items()) {
    auto reader = open_database(local_storage(), data_path(name));
    ASSERT_TRUE(reader) << reader.error().message();
    std::string lines;
    const std::vector<std::string> all = keys(**reader, "");
    EXPECT_EQ(all.size(), entry["keys"].get<size_t>()) << name;
    for (const std::string& key : all) {
      const auto value = (*reader)->read(key);
      ASSERT_TRUE(value) << value.error().message();
      lines += fmt::format("{} {}\n", hex(as_bytes(key)), sha256_hex(**value));
    }
    EXPECT_EQ(sha256_hex(as_bytes(lines)), entry["sha256"].get<std::string>()) << name;
  }
}

TEST(StockDatabases, ListByPrefixThroughAllLevels) {
  const Manifest manifest =
      *decode_manifest(as_bytes(*local_storage().read_text(data_path("ocdbt/deep/manifest.ocdbt"))));
  EXPECT_GE(manifest.versions.back().root_height, 3);
  const auto reader = *open_database(local_storage(), data_path("ocdbt/deep"));
  const std::vector<std::string> all = keys(*reader, "");
  for (const std::string& key : all)
    for (size_t size = 0; size <= key.size(); size += 3) {
      const std::string prefix = key.substr(0, size);
      std::vector<std::string> matching;
      std::ranges::copy_if(all, std::back_inserter(matching), [&](const auto& one) { return one.starts_with(prefix); });
      ASSERT_EQ(keys(*reader, prefix), matching) << prefix;
    }
  EXPECT_THAT(keys(*reader, "params.layers_99"), ElementsAre());
  EXPECT_THAT(keys(*reader, "zzz"), ElementsAre());
}

TEST(StockDatabases, DoNotHoldOtherKeys) {
  const auto reader = *open_database(local_storage(), data_path("ocdbt/deep"));
  for (const std::string& key : keys(*reader, "")) {
    EXPECT_EQ(*reader->read(key + "\x01"), std::nullopt);
    if (!key.empty() && key.back() != '\0') {
      std::string smaller = key;
      --smaller.back();
      smaller += "\xff\xff";
      EXPECT_EQ(*reader->locate(smaller), std::nullopt);
    }
  }
  EXPECT_EQ(reader->read_range("missing", 0, 1).error().kind(), ErrorKind::kNotFound);
}

TEST(StockDatabases, CanBeReadInParts) {
  const auto reader = *open_database(local_storage(), data_path("ocdbt/numbered"));
  const Bytes whole = **reader->read("key1");
  ASSERT_EQ(whole.size(), 2000u);
  const Bytes part = *reader->read_range("key1", 100, 50);
  EXPECT_TRUE(std::ranges::equal(part, ByteSpan(whole).subspan(100, 50)));
  EXPECT_EQ(reader->read_range("key1", 2000, 0)->size(), 0u);
  EXPECT_EQ(reader->read_range("key1", 1999, 2).error().kind(), ErrorKind::kCorruptData);
  EXPECT_EQ(reader->read_range("key1", UINT64_MAX, 2).error().kind(), ErrorKind::kCorruptData);
  EXPECT_EQ(reader->read("key1", 1999).error().kind(), ErrorKind::kResourceLimit);
  const ValueLocation where = **reader->locate("key1");
  Bytes direct(where.length);
  ASSERT_TRUE((*local_storage().open(where.path))->read_at(where.offset, direct));
  EXPECT_EQ(direct, whole);
}

TEST(OpenDatabase, SaysWhatIsThereInsteadOfAManifest) {
  MemoryStorage storage;
  ASSERT_TRUE(storage.make_directories("db/d"));
  ASSERT_TRUE(storage.write_text("db/_METADATA", ""));
  const auto result = open_database(storage, "db");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(result.error().message(),
            "db/manifest.ocdbt: no such file, so db is no finished OCDBT database; the folder holds _METADATA, d");
  EXPECT_THAT(open_database(storage, "nowhere").error().message(), HasSubstr("cannot be listed"));
}

TEST(OpenDatabase, TakesANumberedDatabaseThatWasNeverWrittenTo) {
  MemoryStorage storage;
  ASSERT_TRUE(storage.make_directories("db"));
  Manifest manifest;
  manifest.config.manifest_kind = ManifestKind::kNumbered;
  ASSERT_TRUE(storage.write_text("db/manifest.ocdbt", as_text(*encode_manifest(manifest))));
  EXPECT_THAT(keys(**open_database(storage, "db"), ""), ElementsAre());
  ASSERT_TRUE(storage.write_text("db/manifest.0000000000000001", as_text(*encode_manifest(manifest))));
  EXPECT_THAT(open_database(storage, "db").error().message(), HasSubstr("expected 0 in a numbered manifest"));
}

/// Builds databases node by node, also such as no writer would.
class HandMade {
 public:
  HandMade() { EXPECT_TRUE(storage_.make_directories("db/d")); }

  Location add(ByteSpan body) {
    const Bytes node = *encode_frame(kBtreeNodeMagic, body, std::nullopt);
    const Location location{.file = 0, .offset = nodes_.size(), .length = node.size()};
    nodes_.insert(nodes_.end(), node.begin(), node.end());
    return location;
  }
  Location leaf(std::vector<std::string> entry_keys, const std::vector<DataFile>& files = {{"", "d/nodes"}},
                Location value = {0, 0, 1}) {
    std::vector<LeafEntry> entries;
    for (const std::string& key : entry_keys) entries.push_back({.key = key, .value = value});
    return add(encode_leaf_node(entries, files, 0));
  }
  Location interior(uint8_t height, std::vector<InteriorEntry> entries,
                    const std::vector<DataFile>& files = {{"", "d/nodes"}}) {
    return add(encode_interior_node(height, entries, files, 0));
  }
  Result<std::unique_ptr<KeyValueReader>> open(Location root, uint8_t height, DataFile file = {"", "d/nodes"}) {
    EXPECT_TRUE(storage_.write_text("db/d/nodes", as_text(nodes_)));
    Manifest manifest;
    manifest.files = {std::move(file)};
    manifest.versions = {{.generation = 1, .root_height = height, .root = root}};
    EXPECT_TRUE(storage_.write_text("db/manifest.ocdbt", as_text(*encode_manifest(manifest))));
    return open_database(storage_, "db");
  }
  MemoryStorage& storage() { return storage_; }
  Bytes& nodes() { return nodes_; }

 private:
  MemoryStorage storage_;
  Bytes nodes_;
};

/// The message of the first thing that fails: opening, listing, reading "k".
std::string failure(const Result<std::unique_ptr<KeyValueReader>>& reader) {
  const auto text = [](const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.message();
    return error.message();
  };
  if (!reader) return text(reader.error());
  const auto listed = (*reader)->list("", [](auto, const auto&) -> Result<> { return {}; });
  if (!listed) return text(listed.error());
  const auto read = (*reader)->read("k");
  return read ? "no failure" : text(read.error());
}

TEST(DamagedDatabase, ReadsAnUndamagedOneMadeByHand) {
  HandMade made;
  const Location low = made.leaf({"a"}), high = made.leaf({"k"});
  const Location root = made.interior(1, {{.key = "a", .child = low}, {.key = "k", .child = high}});
  EXPECT_EQ(failure(made.open(root, 1)), "no failure");
}

TEST(DamagedDatabase, WithAHeightThatLoopsBack) {
  HandMade made;
  const Location inner = made.interior(1, {{.key = "", .child = {0, 0, 1}}});
  // The node names itself: it lies at offset `inner.length` and all its fields are single bytes.
  const Location self{0, inner.length, inner.length};
  EXPECT_EQ(made.interior(1, {{.key = "", .child = self}}), self);
  EXPECT_THAT(failure(made.open(self, 1)), HasSubstr(" of db/d/nodes: it has height 1, expected 0"));
}

TEST(DamagedDatabase, WithAnotherHeightThanTheManifestStates) {
  HandMade made;
  const Location root = made.leaf({"k"});
  EXPECT_EQ(failure(made.open(root, 3)), "B+tree node at offset 0 of db/d/nodes: it has height 0, expected 3");
}

TEST(DamagedDatabase, WithNodesThatMultiplyWithoutEnd) {
  HandMade made;
  Location below = made.leaf({"", "k"});
  for (uint8_t height = 1; height <= 60; ++height)
    below = made.interior(height, {{.key = "a", .subtree_prefix_length = 1, .child = below},
                                   {.key = "b", .subtree_prefix_length = 1, .child = below}});
  EXPECT_THAT(failure(made.open(below, 60)), HasSubstr("it is reached twice"));
}

TEST(DamagedDatabase, WithTheGreatestHeight) {
  HandMade made;
  Location below = made.leaf({"k"});
  for (int height = 1; height <= 255; ++height)
    below = made.interior(static_cast<uint8_t>(height), {{.key = "k", .child = below}});
  EXPECT_EQ(failure(made.open(below, 255)), "no failure");
}

TEST(DamagedDatabase, WithAChildSmallerThanItsParentStates) {
  HandMade made;
  const Location child = made.leaf({"a"});
  const Location root = made.interior(1, {{.key = "k", .child = child}});
  EXPECT_THAT(failure(made.open(root, 1)),
              HasSubstr("its first key \"a\" is smaller than \"k\", the one its parent states"));
}

TEST(DamagedDatabase, WithChildrenThatOverlap) {
  HandMade made;
  const Location low = made.leaf({"a", "z"}), high = made.leaf({"k"});
  const Location root = made.interior(1, {{.key = "a", .child = low}, {.key = "k", .child = high}});
  EXPECT_THAT(failure(made.open(root, 1)), HasSubstr("the key \"k\" of 1 bytes is not larger than the one before it"));
}

TEST(DamagedDatabase, WithKeysThatGrowTooLong) {
  HandMade made;
  const std::string key(40000, 'k');
  const Location leaf = made.leaf({key});
  const Location root = made.interior(1, {{.key = key, .subtree_prefix_length = 40000, .child = leaf}});
  EXPECT_THAT(failure(made.open(root, 1)), HasSubstr("of 80000 bytes is too long"));
}

TEST(DamagedDatabase, WithADataFileOutsideOfIt) {
  for (const DataFile& file : {DataFile{"", "../secret"}, DataFile{"", "/etc/passwd"}, DataFile{"../", "secret"},
                               DataFile{"", "d/../../secret"}, DataFile{"", ""}}) {
    HandMade values;
    EXPECT_THAT(failure(values.open(values.leaf({"k"}, {file}), 0)), HasSubstr("does not lie below"));
    HandMade nodes;
    EXPECT_THAT(failure(nodes.open({0, 0, 1}, 0, file)), HasSubstr("db/manifest.ocdbt: the data file"));
  }
}

TEST(DamagedDatabase, WithBasePathsThatJoinToLeaveIt) {
  HandMade made;
  // The base path "." of the child's file and "./secret" in the child make "../secret".
  const Location leaf = made.leaf({"k"}, {{"", "./secret"}});
  const Location root = made.interior(1, {{.key = "k", .child = leaf}}, {{".", "d/nodes"}});
  ASSERT_TRUE(made.storage().make_directories("db/.d"));
  ASSERT_TRUE(made.storage().write_text("db/.d/nodes", as_text(made.nodes())));
  EXPECT_EQ(
      failure(made.open(root, 1)),
      "B+tree node at offset 0 of db/.d/nodes: the data file \"../secret\" does not lie below the database's folder");
}

TEST(DamagedDatabase, WithValuesAndNodesBeyondTheirFile) {
  HandMade values;
  const std::string text =
      failure(values.open(values.leaf({"k"}, {{"", "d/nodes"}}, {.file = 0, .offset = 5, .length = 1000}), 0));
  EXPECT_THAT(text, HasSubstr("reading key \"k\" of the database db: db/d/nodes ends at byte "));
  EXPECT_THAT(text, HasSubstr("but 1000 bytes from offset 5 are needed"));
  HandMade nodes;
  EXPECT_THAT(failure(nodes.open({0, 0, uint64_t{1} << 40}, 0)), HasSubstr("it has 1099511627776 bytes, at most"));
  EXPECT_THAT(failure(nodes.open({0, uint64_t{1} << 62, 10}, 0)), HasSubstr("db/d/nodes ends at byte 0"));
}

TEST(DamagedDatabase, WithoutADataFile) {
  HandMade made;
  const auto reader = made.open(made.leaf({"k"}, {{"", "d/gone"}}), 0);
  const auto read = (*reader)->read("k");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(read.error().message(),
            "reading key \"k\" of the database db: opening db/d/gone: No such file or directory");
}

TEST(DamagedDatabase, WithAnyByteOfItsManifestOrNodesChanged) {
  HandMade made;
  const Location low = made.leaf({"a"}), high = made.leaf({"k"});
  const Location root = made.interior(1, {{.key = "a", .child = low}, {.key = "k", .child = high}});
  ASSERT_EQ(failure(made.open(root, 1)), "no failure");
  for (const std::string path : {"db/manifest.ocdbt", "db/d/nodes"}) {
    const std::string good = *made.storage().read_text(path);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 0x10);
      ASSERT_TRUE(made.storage().write_text(path, bad));
      EXPECT_THAT(failure(open_database(made.storage(), "db")), HasSubstr(path)) << i;
    }
    ASSERT_TRUE(made.storage().write_text(path, good.substr(0, good.size() - 1)));
    EXPECT_THAT(failure(open_database(made.storage(), "db")), HasSubstr(path));
    ASSERT_TRUE(made.storage().write_text(path, good));
  }
}

TEST(DamagedDatabase, ToleratesBytesAfterTheNodesButNotAfterTheManifest) {
  HandMade made;
  const Location root = made.leaf({"k"});
  made.nodes().resize(made.nodes().size() + 100);
  EXPECT_EQ(failure(made.open(root, 0)), "no failure");
  const std::string manifest = *made.storage().read_text("db/manifest.ocdbt");
  ASSERT_TRUE(made.storage().write_text("db/manifest.ocdbt", manifest + "x"));
  EXPECT_THAT(failure(open_database(made.storage(), "db")),
              HasSubstr("db/manifest.ocdbt: manifest states at offset 4"));
}

}  // namespace
}  // namespace maxport::ocdbt
