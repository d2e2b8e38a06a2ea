#include "huggingface/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "huggingface/model_directory.h"
#include "storage/faulty_storage.h"
#include "storage/memory_storage.h"

namespace maxport::huggingface {
namespace {

using safetensors::TensorSpec;
using testing::HasSubstr;
using testing::IsEmpty;

const Json kConfig = {{"model_type", "llama"}, {"num_hidden_layers", 1}};

const std::vector<TensorSpec>& specs() {
  static const std::vector<TensorSpec> list = {{"a", DType::kBfloat16, {100}},
                                               {"b", DType::kFloat32, {50}},
                                               {"c", DType::kUint8, {150}},
                                               {"empty", DType::kFloat32, {0, 4}},
                                               {"d", DType::kUint8, {900}}};
  return list;
}

WriterOptions small_shards() { return {.max_shard_size = "400", .max_open_files = 1}; }

char fill_of(size_t tensor) { return static_cast<char>('p' + tensor); }

Result<> write_all(ShardedWriter& writer, size_t piece = 7) {
  for (size_t i = 0; i < writer.tensors().size(); ++i) {
    const uint64_t size = safetensors::tensor_byte_size(specs()[i].dtype, specs()[i].shape).value();
    for (uint64_t at = 0; at < size; at += piece)
      MAXPORT_RETURN_IF_ERROR(
          writer.write(i, at, as_bytes(std::string(std::min<size_t>(piece, size - at), fill_of(i)))));
  }
  return {};
}

void expect_whole(Storage& storage, const std::string& folder) {
  const auto model = ModelDirectory::open(storage, folder);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT((*model)->warnings(), IsEmpty());
  EXPECT_EQ((*model)->tensors().size(), specs().size());
  for (size_t i = 0; i < specs().size(); ++i) {
    const TensorEntry tensor = (*model)->find(specs()[i].name).value();
    EXPECT_EQ(tensor.info->shape, specs()[i].shape);
    std::string bytes(tensor.info->byte_size(), ' ');
    ASSERT_TRUE((*model)->read(tensor, 0, std::as_writable_bytes(std::span(bytes))));
    EXPECT_EQ(bytes, std::string(bytes.size(), fill_of(i)));
  }
}

TEST(ShardedWriter, WritesShardsThatReadBackWithoutAWarning) {
  MemoryStorage storage;
  auto writer = ShardedWriter::create(storage, "/out", specs(), small_shards());
  ASSERT_TRUE(writer) << writer.error().message();
  EXPECT_EQ((*writer)->plan().files.size(), 3u);
  ASSERT_TRUE(write_all(**writer));
  EXPECT_EQ(storage.kind("/out").value(), std::nullopt);
  const auto published = (*writer)->publish(kConfig);
  ASSERT_TRUE(published) << published.error().message();
  expect_whole(storage, "/out");
  EXPECT_EQ(storage.kind("/out.maxport-tmp").value(), std::nullopt);
  EXPECT_EQ(storage.read_text("/out/config.json").value(), file_text(kConfig));
}

TEST(ShardedWriter, WritesOneFileWithoutAnIndex) {
  MemoryStorage storage;
  auto writer = ShardedWriter::create(storage, "/out", specs()).value();
  ASSERT_TRUE(write_all(*writer));
  ASSERT_TRUE(writer->publish(kConfig));
  expect_whole(storage, "/out");
  std::vector<std::string> names;
  const auto entries = storage.list("/out").value();
  for (const DirectoryEntry& entry : entries) names.push_back(entry.name);
  EXPECT_THAT(names, testing::ElementsAre("config.json", "model.safetensors"));
}

TEST(ShardedWriter, GivesTheSameBytesFromSeveralThreadsWithFewFilesOpen) {
  MemoryStorage storage;
  auto plain = ShardedWriter::create(storage, "/a", specs(), {.max_shard_size = "400"}).value();
  ASSERT_TRUE(write_all(*plain));
  ASSERT_TRUE(plain->publish(kConfig));
  auto writer = ShardedWriter::create(storage, "/b", specs(), small_shards()).value();
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 5; ++t)
    threads.emplace_back([&, t] {
      const uint64_t size = safetensors::tensor_byte_size(specs()[t].dtype, specs()[t].shape).value();
      for (uint64_t at = size; at-- > 0;) {
        EXPECT_TRUE(writer->write(t, at, as_bytes(std::string(1, fill_of(t)))));
        if (at % 100 != 0) continue;
        EXPECT_TRUE(writer->sync());
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(writer->publish(kConfig));
  const auto entries = storage.list("/a").value();
  for (const DirectoryEntry& entry : entries)
    EXPECT_EQ(storage.read_text("/a/" + entry.name).value(), storage.read_text("/b/" + entry.name).value())
        << entry.name;
}

TEST(ShardedWriter, RefusesATargetThatIsThereAndTakesAnEmptyFolder) {
  MemoryStorage storage;
  ASSERT_TRUE(storage.make_directories("/out"));
  auto writer = ShardedWriter::create(storage, "/out/", specs(), small_shards()).value();
  ASSERT_TRUE(write_all(*writer));
  ASSERT_TRUE(writer->publish(kConfig));
  expect_whole(storage, "/out");
  EXPECT_EQ(storage.kind("/out.maxport-old").value(), std::nullopt);
  const auto second = ShardedWriter::create(storage, "/out", specs());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(second.error().message(), HasSubstr("/out: is there already"));
}

TEST(ShardedWriter, DoesNotTouchATargetThatFilledUpMeanwhile) {
  MemoryStorage storage;
  ASSERT_TRUE(storage.make_directories("/out"));
  auto writer = ShardedWriter::create(storage, "/out", specs()).value();
  ASSERT_TRUE(write_all(*writer));
  ASSERT_TRUE(storage.write_text("/out/precious", "mine"));
  EXPECT_THAT(writer->publish(kConfig).error().message(), HasSubstr("the finished model is in /out.maxport-tmp"));
  EXPECT_EQ(storage.read_text("/out/precious").value(), "mine");
  expect_whole(storage, "/out.maxport-tmp");
}

// R34
TEST(ShardedWriter, RefusesASecondWriterAtOnce) {
  MemoryStorage storage;
  auto first = ShardedWriter::create(storage, "/out", specs()).value();
  ASSERT_TRUE(write_all(*first));
  const auto second = ShardedWriter::create(storage, "/out", specs());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("another run is writing it or was interrupted"));
  ASSERT_TRUE(first->publish(kConfig));
  expect_whole(storage, "/out");
}

TEST(ShardedWriter, GoesOnAfterAnInterruptionOrBeginsAnew) {
  for (const Leftover leftover : {Leftover::kResume, Leftover::kReplace}) {
    MemoryStorage storage;
    WriterOptions options = small_shards();
    {
      auto first = ShardedWriter::create(storage, "/out", specs(), options).value();
      ASSERT_TRUE(first->write(0, 0, as_bytes(std::string(200, fill_of(0)))));
      ASSERT_TRUE(storage.write_text("/out.maxport-tmp/left", "x"));
    }
    options.leftover = leftover;
    auto second = ShardedWriter::create(storage, "/out", specs(), options).value();
    EXPECT_EQ(storage.kind("/out.maxport-tmp/left").value().has_value(), leftover == Leftover::kResume);
    ASSERT_TRUE(storage.remove_all("/out.maxport-tmp/left"));
    for (size_t i = leftover == Leftover::kResume ? 1 : 0; i < specs().size(); ++i) {
      const uint64_t size = safetensors::tensor_byte_size(specs()[i].dtype, specs()[i].shape).value();
      ASSERT_TRUE(second->write(i, 0, as_bytes(std::string(size, fill_of(i)))));
    }
    ASSERT_TRUE(second->publish(kConfig));
    expect_whole(storage, "/out");
  }
}

TEST(ShardedWriter, PublishesNothingThatIsNotWholeOnDisk) {
  MemoryStorage storage;
  auto writer = ShardedWriter::create(storage, "/out", specs(), small_shards()).value();
  ASSERT_TRUE(writer->write(0, 0, as_bytes(std::string(200, 'x'))));
  EXPECT_EQ(writer->publish(kConfig).error().kind(), ErrorKind::kInternal);
  EXPECT_EQ(storage.kind("/out").value(), std::nullopt);
  ASSERT_TRUE(writer->discard());
  EXPECT_EQ(storage.kind("/out.maxport-tmp").value(), std::nullopt);
}

// The target is absent or whole, wherever the power goes.
TEST(ShardedWriter, LeavesNothingOrAWholeModelAfterPowerLoss) {
  for (uint64_t changes = 0;; ++changes) {
    MemoryStorage memory;
    FaultyStorage storage(memory);
    storage.stop_changes_after(changes);
    auto writer = ShardedWriter::create(storage, "/out", specs(), small_shards());
    const bool done = writer && write_all(**writer, 300) && (*writer)->publish(kConfig);
    const auto after = memory.after_power_loss();
    const bool there = after->kind("/out").value().has_value();
    EXPECT_TRUE(there || !done);
    if (there) expect_whole(*after, "/out");
    if (done) break;
    ASSERT_LT(changes, 1000u);
  }
}

TEST(ShardedWriter, RefusesABadShardSizeBeforeCreatingAnything) {
  MemoryStorage storage;
  EXPECT_FALSE(ShardedWriter::create(storage, "/out", specs(), {.max_shard_size = "big"}));
  EXPECT_FALSE(ShardedWriter::create(storage, "/out", {{"__metadata__", DType::kUint8, {1}}}));
  EXPECT_TRUE(storage.list("/").value().empty());
}

}  // namespace
}  // namespace maxport::huggingface
