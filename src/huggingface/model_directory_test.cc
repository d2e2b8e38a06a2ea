#include "huggingface/model_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "huggingface/test_model.h"
#include "storage/faulty_storage.h"
#include "storage/memory_storage.h"
#include "storage/temporary_folder.h"

namespace maxport::huggingface {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ModelDirectoryTest : public testing::Test {
 protected:
  Result<std::unique_ptr<ModelDirectory>> open(const OpenOptions& options = {}) {
    return ModelDirectory::open(storage_, "/m", options);
  }
  std::unique_ptr<ModelDirectory> opened(const OpenOptions& options = {}) {
    auto model = open(options);
    EXPECT_TRUE(model) << model.error().message();
    return std::move(model.value());
  }
  Error refusal(const OpenOptions& options = {}) {
    auto model = open(options);
    EXPECT_FALSE(model);
    return model ? Error(ErrorKind::kInternal, "opened") : model.error();
  }
  std::string content(const ModelDirectory& model, std::string_view name) {
    std::string bytes(model.find(name).value().info->byte_size(), ' ');
    EXPECT_TRUE(model.read(name, 0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }

  MemoryStorage storage_;
  TestModel model_{storage_, "/m"};
};

TEST_F(ModelDirectoryTest, ReadsASingleFile) {
  model_.write_single();
  const auto model = opened();
  EXPECT_THAT(model->warnings(), IsEmpty());
  ASSERT_EQ(model->tensors().size(), 1u);
  EXPECT_EQ(content(*model, "w"), std::string(16, 's'));
  EXPECT_EQ(model->roles().integer("head_dim").value(), 2);
  EXPECT_EQ(model->config()["model_type"], "llama");
}

TEST_F(ModelDirectoryTest, ReadsTheFilesThatTheIndexLists) {
  model_.write_shards();
  const auto model = opened();
  EXPECT_THAT(model->warnings(), IsEmpty());
  EXPECT_EQ(model->tensors().size(), 6u);
  ASSERT_EQ(model->files().size(), 3u);
  EXPECT_EQ(model->files()[1]->name, TestModel::shard(2));
  EXPECT_EQ(model->files()[1]->header_digest.size(), 32u);
  EXPECT_NE(model->files()[1]->stamp.size, 0u);
  EXPECT_EQ(model->find("layers.2.a").value().file, 1u);
  EXPECT_EQ(content(*model, "layers.3.b"), "33333333");
  std::string part(3, ' ');
  EXPECT_TRUE(model->read("layers.2.a", 13, std::as_writable_bytes(std::span(part))));
  EXPECT_EQ(part, "222");
  EXPECT_EQ(model->read("layers.2.a", 14, std::as_writable_bytes(std::span(part))).error().kind(),
            ErrorKind::kInvalidArgument);
}

// R01
TEST_F(ModelDirectoryTest, WarnsOfATensorThatItsShardDoesNotHold) {
  model_.write_shards();
  model_.weight_map["mtp.fc.weight"] = TestModel::shard(2);
  model_.write_index();
  const auto model = opened();
  EXPECT_FALSE(model->tensors().contains("mtp.fc.weight"));
  EXPECT_THAT(model->warnings(), ElementsAre(AllOf(HasSubstr("mtp.fc.weight"), HasSubstr(TestModel::shard(2)),
                                                   HasSubstr("listed in the index"), HasSubstr("absent in shard"))));
  const auto needed = model->find("mtp.fc.weight");
  ASSERT_FALSE(needed);
  EXPECT_EQ(needed.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(needed.error().message(), AllOf(HasSubstr("mtp.fc.weight"), HasSubstr(TestModel::shard(2)),
                                              HasSubstr("listed in the index"), HasSubstr("absent in shard")));
}

TEST_F(ModelDirectoryTest, SaysWhereATensorIsThatTheIndexPutsElsewhere) {
  model_.write_shards();
  model_.weight_map["layers.1.a"] = TestModel::shard(2);
  model_.write_index();
  const auto model = opened();
  const auto needed = model->find("layers.1.a");
  ASSERT_FALSE(needed);
  EXPECT_THAT(needed.error().message(), AllOf(HasSubstr("absent in shard " + TestModel::shard(2)),
                                              HasSubstr("present in " + TestModel::shard(1))));
  EXPECT_TRUE(model->find("layers.1.b"));
}

TEST_F(ModelDirectoryTest, DoesNotTakeInATensorThatTheIndexDoesNotList) {
  model_.write_shards();
  model_.weight_map.erase("layers.3.b");
  model_.write_index();
  const auto model = opened();
  EXPECT_EQ(model->tensors().size(), 5u);
  EXPECT_THAT(model->warnings(), Contains(HasSubstr("\"layers.3.b\" is in " + TestModel::shard(3))));
  EXPECT_THAT(model->find("layers.3.b").error().message(), HasSubstr("the index does not list it"));
}

TEST_F(ModelDirectoryTest, TakesTheCopyThatTheIndexNames) {
  model_.write_shards();
  write_tensors(storage_, model_.path(TestModel::shard(3)),
                {{"layers.3.a", DType::kBfloat16, {2, 4}},
                 {"layers.3.b", DType::kBfloat16, {4}},
                 {"layers.1.b", DType::kBfloat16, {4}}},
                'c');
  const auto model = opened();
  EXPECT_EQ(content(*model, "layers.1.b"), "11111111");
  EXPECT_THAT(model->warnings(), Contains(HasSubstr("\"layers.1.b\" is also in " + TestModel::shard(3))));
}

TEST_F(ModelDirectoryTest, NamesATensorThatNobodyKnows) {
  model_.write_shards();
  const auto needed = opened()->find("layers.9.a");
  EXPECT_EQ(needed.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(needed.error().message(), HasSubstr("no file of the model holds tensor \"layers.9.a\""));
}

// R02
TEST_F(ModelDirectoryTest, NamesTheShardsThatWereNeverDownloaded) {
  model_.write_shards();
  ASSERT_TRUE(storage_.remove_all(model_.path(TestModel::shard(2))));
  ASSERT_TRUE(storage_.remove_all(model_.path(TestModel::shard(3))));
  const Error error = refusal();
  EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("2 of 3 weight files are missing"), HasSubstr(TestModel::shard(2)),
                                     HasSubstr(TestModel::shard(3)), HasSubstr("looks like an incomplete download")));
}

// R03
TEST_F(ModelDirectoryTest, NeverOpensAStrayFileBesideAnIndex) {
  model_.write_shards();
  write_tensors(storage_, model_.path("model.safetensors"), {{"layers.1.a", DType::kUint8, {3}}});
  FaultyStorage watched(storage_);
  const auto model = ModelDirectory::open(watched, "/m");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT((*model)->warnings(), ElementsAre(HasSubstr("model.safetensors: not opened")));
  for (const auto& record : watched.records())
    EXPECT_FALSE(record.operation == Operation::kOpen && record.path == "/m/model.safetensors");
  EXPECT_EQ((*model)->find("layers.1.a").value().info->dtype, DType::kBfloat16);
}

// R04
TEST_F(ModelDirectoryTest, RefusesAStaleIndexAndOffersAWayOn) {
  model_.write_shards();
  for (int n = 1; n <= 3; ++n)
    ASSERT_TRUE(storage_.rename(model_.path(TestModel::shard(n)), model_.path(fmt::format("new-{}.safetensors", n))));
  const Error error = refusal();
  EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("is stale"), HasSubstr(TestModel::shard(1)),
                                     HasSubstr("new-1.safetensors"), HasSubstr("--ignore_index")));
  const auto model = opened({.ignore_index = true});
  EXPECT_EQ(model->tensors().size(), 6u);
  EXPECT_EQ(content(*model, "layers.2.b"), "22222222");
  EXPECT_THAT(model->warnings(), ElementsAre(HasSubstr("ignored as asked for")));
}

TEST_F(ModelDirectoryTest, WithoutTheIndexATensorMayNotBeInTwoFiles) {
  model_.write_shards();
  write_tensors(storage_, model_.path("model.safetensors"), {{"layers.1.a", DType::kUint8, {3}}});
  const Error error = refusal({.ignore_index = true});
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("\"layers.1.a\" is in both"), HasSubstr(TestModel::shard(1)),
                                     HasSubstr("model.safetensors")));
}

// R05
TEST_F(ModelDirectoryTest, UsesExactlyTheListedFilesWhateverTheirNames) {
  write_tensors(storage_, model_.path("part-a.safetensors"), {{"a", DType::kUint8, {3}}}, 'a');
  write_tensors(storage_, model_.path("tail.safetensors"), {{"t", DType::kUint8, {3}}}, 't');
  write_tensors(storage_, model_.path("consolidated.safetensors"),
                {{"a", DType::kUint8, {3}}, {"t", DType::kUint8, {3}}}, 'c');
  write_tensors(storage_, model_.path("other.safetensors"), {{"o", DType::kUint8, {3}}});
  model_.weight_map = {{"a", "part-a.safetensors"}, {"t", "tail.safetensors"}};
  model_.write_index();
  const auto model = opened();
  EXPECT_EQ(content(*model, "t"), "ttt");
  EXPECT_THAT(model->warnings(), testing::UnorderedElementsAre(HasSubstr("consolidated.safetensors: ignored"),
                                                               HasSubstr("other.safetensors: not opened"),
                                                               HasSubstr("total_size of 72, its tensors have 6")));
}

TEST_F(ModelDirectoryTest, IgnoresConsolidatedFilesAlsoWithoutAnIndex) {
  model_.write_single();
  write_tensors(storage_, model_.path("consolidated.00.safetensors"), {{"w", DType::kUint8, {3}}});
  EXPECT_THAT(opened()->warnings(), ElementsAre(HasSubstr("consolidated.00.safetensors: ignored")));
  EXPECT_EQ(opened({.ignore_index = true})->tensors().size(), 1u);
}

TEST_F(ModelDirectoryTest, SaysThatOnlyTheAuthorsOwnLayoutIsThere) {
  write_tensors(storage_, model_.path("consolidated.safetensors"), {{"w", DType::kUint8, {3}}});
  EXPECT_EQ(refusal().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(refusal().message(), HasSubstr("consolidated.safetensors"));
}

// R07
TEST_F(ModelDirectoryTest, NamesTheShardAndTheTensorThatAreCut) {
  model_.write_shards();
  const std::string path = model_.path(TestModel::shard(2));
  const std::string whole = storage_.read_text(path).value();
  ASSERT_TRUE(storage_.write_text(path, whole.substr(0, whole.size() - 1)));
  const Error error = refusal();
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), AllOf(HasSubstr(TestModel::shard(2)), HasSubstr("first tensor cut is \"layers.2.b\"")));
}

// R08
TEST_F(ModelDirectoryTest, CallsAPointerFileWhatItIs) {
  ASSERT_TRUE(storage_.write_text(model_.path("model.safetensors"), "version https://git-lfs.github.com/spec/v1\n"));
  EXPECT_EQ(refusal().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(refusal().message(), HasSubstr("Git LFS pointer"));
}

// R10
TEST_F(ModelDirectoryTest, RefusesBadMetadataUnlessOnlyListing) {
  std::string file(8, '\0');
  const std::string header = R"({"__metadata__":{"step":0}})";
  store_le<uint64_t>(header.size(), reinterpret_cast<std::byte*>(file.data()));
  ASSERT_TRUE(storage_.write_text(model_.path("model.safetensors"), file + header));
  EXPECT_THAT(refusal().message(), HasSubstr("\"step\""));
  const auto model = opened({.metadata = safetensors::MetadataPolicy::kTolerate});
  EXPECT_THAT(model->warnings(), ElementsAre(AllOf(HasSubstr("model.safetensors"), HasSubstr("\"step\""))));
}

// R12
TEST_F(ModelDirectoryTest, NamesThePickleThatItWillNotRead) {
  ASSERT_TRUE(storage_.write_text(model_.path("pytorch_model.bin"), "PK\x03\x04"));
  const Error error = refusal();
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("pytorch_model.bin"), HasSubstr("save_pretrained"), Not(HasSubstr("\n"))));
}

TEST_F(ModelDirectoryTest, TellsAFolderWithoutWeightsFromOneWithoutAnIndex) {
  EXPECT_EQ(refusal().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(refusal().message(), HasSubstr("there is no model.safetensors"));
  model_.write_shards();
  ASSERT_TRUE(storage_.remove_all(model_.path("model.safetensors.index.json")));
  EXPECT_EQ(refusal().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(refusal().message(), AllOf(HasSubstr("index.json"), HasSubstr(TestModel::shard(1))));
  EXPECT_EQ(opened({.ignore_index = true})->tensors().size(), 6u);
}

TEST_F(ModelDirectoryTest, NamesAMissingFolderAndAMissingConfig) {
  EXPECT_EQ(ModelDirectory::open(storage_, "/nowhere").error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(ModelDirectory::open(storage_, "/m/config.json").error().kind(), ErrorKind::kInvalidArgument);
  model_.write_single();
  ASSERT_TRUE(storage_.remove_all(model_.path("config.json")));
  EXPECT_EQ(refusal().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(refusal().message(), AllOf(HasSubstr("no config.json"), HasSubstr("it holds model.safetensors")));
}

TEST_F(ModelDirectoryTest, RefusesAnIndexThatLeavesTheFolder) {
  model_.write_shards();
  model_.weight_map["layers.1.a"] = "../m/" + TestModel::shard(1);
  model_.write_index();
  EXPECT_EQ(refusal().kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(refusal().message(), HasSubstr("layers.1.a"));
}

TEST_F(ModelDirectoryTest, KeepsTheNumberOfWarningsBounded) {
  model_.write_shards();
  for (int i = 0; i < 1000; ++i) model_.weight_map[fmt::format("made.up.{}", i)] = TestModel::shard(1);
  model_.write_index();
  const auto model = opened();
  EXPECT_LT(model->warnings().size(), 250u);
  EXPECT_THAT(model->warnings().back(), HasSubstr("more warnings are not shown"));
}

TEST_F(ModelDirectoryTest, OpensAnAdapterByItsNames) {
  write_tensors(storage_, model_.path("adapter_model.safetensors"), {{"lora_A", DType::kFloat32, {2}}});
  ASSERT_TRUE(storage_.write_text(model_.path("adapter_config.json"), R"({"r":4,"peft_type":"LORA"})"));
  const auto model = opened({.weights_stem = "adapter_model", .config_name = "adapter_config.json"});
  EXPECT_TRUE(model->find("lora_A"));
  EXPECT_EQ(model->config()["r"], 4);
}

TEST_F(ModelDirectoryTest, KeepsFewFilesOpenAndReadsAllOfThem) {
  model_.write_shards();
  FaultyStorage watched(storage_);
  const auto model = ModelDirectory::open(watched, "/m", {.max_open_files = 2}).value();
  const auto opens = [&] {
    size_t count = 0;
    for (const auto& record : watched.records())
      count += record.operation == Operation::kOpen && record.path.ends_with("3.safetensors");
    return count;
  };
  const size_t before = opens();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        for (int n = 1; n <= 3; ++n)
          EXPECT_EQ(content(*model, fmt::format("layers.{}.b", n)), std::string(8, static_cast<char>('0' + n)));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(opens(), 2u);  // closed for others, then opened again

  const auto roomy = ModelDirectory::open(watched, "/m", {.max_open_files = 3}).value();
  const size_t after = opens();
  for (int n = 1; n <= 3; ++n) EXPECT_EQ(content(*roomy, fmt::format("layers.{}.b", n)).size(), 8u);
  EXPECT_EQ(opens(), after);
  EXPECT_GT(before, 0u);
}

TEST_F(ModelDirectoryTest, NoticesAShardThatChangesBetweenHeaderAndData) {
  model_.write_shards();
  const auto model = opened({.max_open_files = 1});
  EXPECT_TRUE(model->check_unchanged());
  write_tensors(storage_, model_.path(TestModel::shard(1)), {{"layers.1.a", DType::kUint8, {99}}});
  std::string bytes(4, ' ');
  const auto read = model->read("layers.1.b", 0, std::as_writable_bytes(std::span(bytes)));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), HasSubstr("changed after its header was read"));
  EXPECT_EQ(model->check_unchanged().error().kind(), ErrorKind::kIo);
}

/// The hub's cache: blobs/HASH, refs/main, snapshots/REVISION/NAME -> ../../blobs/HASH.
class HubCacheTest : public testing::Test {
 protected:
  HubCacheTest() {
    TestModel model(local_storage(), snapshot_);
    model.write_shards();
    EXPECT_TRUE(local_storage().make_directories(repository_ + "/blobs"));
    EXPECT_TRUE(local_storage().make_directories(repository_ + "/refs"));
    EXPECT_TRUE(local_storage().write_text(repository_ + "/refs/main", "0123abc"));
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(snapshot_)) files.push_back(entry.path());
    for (const auto& file : files) {
      std::filesystem::rename(file, repository_ + "/blobs/hash-" + file.filename().string());
      std::filesystem::create_symlink("../../blobs/hash-" + file.filename().string(), file);
    }
  }

  TemporaryFolder folder_;
  std::string repository_ = folder_ / "models--org--name";
  std::string snapshot_ = repository_ + "/snapshots/0123abc";
};

TEST_F(HubCacheTest, OpensASnapshotOfLinks) {
  const auto model = ModelDirectory::open(local_storage(), snapshot_);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT((*model)->warnings(), IsEmpty());
  EXPECT_EQ((*model)->tensors().size(), 6u);
}

TEST_F(HubCacheTest, FindsTheSnapshotOfARepository) {
  const auto model = ModelDirectory::open(local_storage(), repository_);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ((*model)->folder(), snapshot_);
}

TEST_F(HubCacheTest, RefusesAReferenceThatLeavesTheRepository) {
  ASSERT_TRUE(local_storage().write_text(repository_ + "/refs/main", "../../elsewhere"));
  EXPECT_EQ(ModelDirectory::open(local_storage(), repository_).error().kind(), ErrorKind::kCorruptData);
}

TEST_F(HubCacheTest, TakesALinkToAMissingBlobForAnIncompleteDownload) {
  ASSERT_TRUE(local_storage().remove_all(repository_ + "/blobs/hash-" + TestModel::shard(2)));
  const auto model = ModelDirectory::open(local_storage(), snapshot_);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(model.error().message(), AllOf(HasSubstr(TestModel::shard(2)), HasSubstr("incomplete download")));
}

TEST(Goldens, ShardedAndSingleFolderHoldTheSameTensors) {
  const std::string base = MAXPORT_TEST_DATA "/goldens/llama3.1-8b/";
  const auto single = ModelDirectory::open(local_storage(), base + "hf").value();
  const auto sharded = ModelDirectory::open(local_storage(), base + "hf_sharded", {.max_open_files = 1}).value();
  EXPECT_THAT(sharded->warnings(), IsEmpty());
  EXPECT_EQ(sharded->files().size(), 3u);
  ASSERT_EQ(single->tensors().size(), sharded->tensors().size());
  for (const auto& [name, tensor] : single->tensors()) {
    Bytes a(tensor.info->byte_size()), b(a.size());
    ASSERT_TRUE(single->read(tensor, 0, a));
    ASSERT_TRUE(sharded->read(name, 0, b));
    EXPECT_EQ(a, b) << name;
  }
}

}  // namespace
}  // namespace maxport::huggingface
