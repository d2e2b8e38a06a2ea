#include "orbax/checkpoint.h"

#include <gmock/gmock.h>

#include "orbax/testing.h"
#include "storage/memory_storage.h"

namespace maxport::orbax {
namespace {

using testing::HasSubstr;

CheckpointWriterOptions layout(bool ocdbt) {
  CheckpointWriterOptions options;
  options.use_ocdbt = ocdbt;
  return options;
}

/// Replaces text in a stored file.
void edit(Storage& storage, const std::string& path, const std::string& from, const std::string& to) {
  std::string text = *storage.read_text(path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  ASSERT_TRUE(storage.write_text(path, text.replace(at, from.size(), to)));
}

TEST(Checkpoint, ReadsWithoutTheFilesThatMayBeAbsent) {
  for (const char* file : {"_CHECKPOINT_METADATA", "commit_success.txt", "items/commit_success.txt", "items/_sharding",
                           "items/array_metadatas"}) {
    MemoryStorage storage;
    CheckpointWriterOptions options;
    options.devices = 2;
    ASSERT_TRUE(write_small(storage, "out", options));
    ASSERT_TRUE(storage.remove_all(join_path("out/0", file)));
    auto checkpoint = Checkpoint::open(storage, "out/0");
    ASSERT_TRUE(checkpoint) << file << checkpoint.error().message();
    EXPECT_EQ((*checkpoint)->leaves().size(), 5u);
  }
}

TEST(Checkpoint, NotesDamagedStepMetadataAndReadsOn) {
  MemoryStorage storage;
  ASSERT_TRUE(write_small(storage, "out"));
  ASSERT_TRUE(storage.write_text("out/0/_CHECKPOINT_METADATA", "{"));
  auto checkpoint = Checkpoint::open(storage, "out");
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_THAT((*checkpoint)->notes(),
              testing::ElementsAre(HasSubstr("ignored: out/0/_CHECKPOINT_METADATA: not valid JSON")));
}

TEST(Checkpoint, TellsTheTreeFromArrayNamesWhenItsMetadataIsGone) {
  for (const bool ocdbt : {true, false}) {
    MemoryStorage storage;
    ASSERT_TRUE(write_small(storage, "out", layout(ocdbt)));
    ASSERT_TRUE(storage.remove_all("out/0/items/_METADATA"));
    auto checkpoint = Checkpoint::open(storage, "out");
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    EXPECT_THAT((*checkpoint)->notes(), testing::ElementsAre("_METADATA is missing; the tree was told from the names of its 3 arrays"));
    const CheckpointLeaf* kernel = (*checkpoint)->find("params.kernel");
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(kernel->path, (TreePath{{"params"}, {"kernel"}}));
    EXPECT_EQ(kernel->shape, (Shape{6, 4}));
    EXPECT_NE((*checkpoint)->find("step"), nullptr);
  }
}

TEST(Checkpoint, SaysWhatIsDamagedOrMissing) {
  struct Case {
    bool ocdbt;
    const char* what;
    std::function<void(Storage&)> damage;
    ErrorKind kind;
    const char* text;
  };
  const auto remove = [](const char* path) {
    return [path](Storage& storage) { ASSERT_TRUE(storage.remove_all(path)); };
  };
  const auto replace = [](const char* path, const char* from, const char* to) {
    return [=](Storage& storage) { edit(storage, path, from, to); };
  };
  const char* tree = "out/0/items/_METADATA";
  const Case cases[] = {
      {true, "manifest gone", remove("out/0/items/manifest.ocdbt"), ErrorKind::kNotFound,
       "out/0/items/manifest.ocdbt is missing: the checkpoint is damaged or was never finished"},
      {true, "tree cut", [&](Storage& s) { ASSERT_TRUE(s.write_text(tree, s.read_text(tree)->substr(0, 200))); },
       ErrorKind::kCorruptData, "out/0/items/_METADATA: not valid JSON"},
      {true, "unknown type", replace(tree, "np.ndarray", "my.Array"), ErrorKind::kUnsupported,
       "leaf \"params.kernel\": unknown type \"my.Array\""},
      {true, "wrong version", replace(tree, "\"use_zarr3\":true", "\"use_zarr3\":false"), ErrorKind::kNotFound,
       "leaf \"params.kernel\": no .zarray of array \"params.kernel\" in the store"},
      {true, "wrong store", replace(tree, "\"use_ocdbt\":true", "\"use_ocdbt\":false"), ErrorKind::kNotFound,
       "no zarr.json of array"},
      {true, "array not stored", replace(tree, "\"key\":\"kernel\"", "\"key\":\"colonel\""), ErrorKind::kNotFound,
       "leaf \"params.colonel\": no zarr.json"},
      {true, "no strings", remove("out/0/items/_strings.json"), ErrorKind::kNotFound, "leaf \"note\": no text in _strings.json"},
      {true, "array as scalar", replace(tree, "np.ndarray", "scalar"), ErrorKind::kCorruptData, "a scalar of shape [6, 4]"},
      {false, "array metadata gone", remove("out/0/items/params.kernel/zarr.json"), ErrorKind::kNotFound,
       "leaf \"params.kernel\": no zarr.json of array"},
      {false, "array metadata damaged", replace("out/0/items/params.kernel/zarr.json", "[6,4]", "[6,4"),
       ErrorKind::kCorruptData, "params.kernel/zarr.json"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    MemoryStorage storage;
    ASSERT_TRUE(write_small(storage, "out", layout(c.ocdbt)));
    c.damage(storage);
    auto checkpoint = Checkpoint::open(storage, "out");
    ASSERT_FALSE(checkpoint);
    EXPECT_EQ(checkpoint.error().kind(), c.kind) << checkpoint.error().message();
    EXPECT_THAT(checkpoint.error().message(),
                testing::AllOf(HasSubstr("reading the checkpoint out/0/items: "), HasSubstr(c.text)));
  }
}

TEST(Checkpoint, KeepsDamagedLeavesWhenAsked) {
  MemoryStorage storage;
  ASSERT_TRUE(write_small(storage, "out", layout(false)));
  ASSERT_TRUE(storage.remove_all("out/0/items/params.kernel"));
  auto checkpoint = Checkpoint::open(storage, "out", {.keep_damaged = true});
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  const CheckpointLeaf* kernel = (*checkpoint)->find("params.kernel");
  ASSERT_TRUE(kernel->problem);
  EXPECT_EQ((*checkpoint)->tensor(*kernel).error().kind(), ErrorKind::kNotFound);
  EXPECT_FALSE((*checkpoint)->find("step")->problem);
}

TEST(Checkpoint, FillsMissingChunksOnlyIfItsMetadataOrTheCallerSaysSo) {
  MemoryStorage storage;
  ASSERT_TRUE(write_small(storage, "out", layout(false)));
  ASSERT_TRUE(storage.remove_all("out/0/items/params.kernel/c/1/0"));
  const auto read = [&](std::optional<bool> fill, Bytes& out) {
    auto checkpoint = *Checkpoint::open(storage, "out", {.fill_missing = fill});
    return (*checkpoint->tensor(*checkpoint->find("params.kernel")))->read(Box::whole(Shape{6, 4}), DType::kFloat32, out);
  };
  Bytes out(96, std::byte{1});
  auto status = read({}, out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(status.error().message(), HasSubstr("chunk params.kernel/c/1/0: the chunk is missing"));
  EXPECT_TRUE(read(true, out));
  EXPECT_EQ(out.back(), std::byte{0});
  edit(storage, "out/0/items/_METADATA", "\"store_array_data_equal_to_fill_value\":true",
       "\"store_array_data_equal_to_fill_value\":false");
  EXPECT_TRUE(read({}, out));
  EXPECT_FALSE(read(false, out));
}

TEST(Checkpoint, NamesFileOffsetAndArrayOfADamagedChunk) {
  MemoryStorage storage;
  ASSERT_TRUE(write_small(storage, "out", layout(false)));
  std::string chunk = *storage.read_text("out/0/items/params.kernel/c/0/0");
  chunk[chunk.size() / 2] ^= 1;
  ASSERT_TRUE(storage.write_text("out/0/items/params.kernel/c/0/0", chunk));
  auto checkpoint = *Checkpoint::open(storage, "out");
  Bytes out(96);
  auto status = (*checkpoint->tensor(*checkpoint->find("params.kernel")))->read(Box::whole(Shape{6, 4}), DType::kFloat32, out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(status.error().message(),
              HasSubstr(fmt::format("array \"params.kernel\", chunk params.kernel/c/0/0 ({} bytes at byte 0 of "
                                    "out/0/items/params.kernel/c/0/0)",
                                    chunk.size())));
}

TEST(Checkpoint, ReadsItemsOfAnyName) {
  MemoryStorage storage;
  CheckpointWriterOptions options;
  options.item = "model";
  ASSERT_TRUE(write_small(storage, "out", options, 3));
  EXPECT_EQ((*Checkpoint::open(storage, "out"))->path().item, "model");
  EXPECT_FALSE(Checkpoint::open(storage, "out", {.item = "items"}));
}

}  // namespace
}  // namespace maxport::orbax
