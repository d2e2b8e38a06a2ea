#include "ocdbt/node_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "ocdbt/frame.h"
#include "storage/faulty_storage.h"
#include "storage/memory_storage.h"

namespace maxport::ocdbt {
namespace {

TEST(LruCache, ForgetsWhatWasNotUsedForLongest) {
  LruCache<int, std::string> cache(10);
  const auto put = [&](int key, uint64_t cost) { cache.insert(key, std::make_shared<const std::string>("x"), cost); };
  put(1, 4);
  put(2, 4);
  ASSERT_TRUE(cache.find(1));
  put(3, 4);
  EXPECT_TRUE(cache.find(1));
  EXPECT_FALSE(cache.find(2));
  EXPECT_TRUE(cache.find(3));
}

TEST(LruCache, KeepsTheLastValueWhateverItCosts) {
  LruCache<int, std::string> cache(10);
  cache.insert(1, std::make_shared<const std::string>("x"), 5);
  cache.insert(2, std::make_shared<const std::string>("y"), 100);
  EXPECT_FALSE(cache.find(1));
  EXPECT_TRUE(cache.find(2));
  cache.insert(3, std::make_shared<const std::string>("z"), 1);
  EXPECT_FALSE(cache.find(2));
  EXPECT_TRUE(cache.find(3));
}

class NodeLoaderTest : public testing::Test {
 protected:
  NodeLoaderTest() {
    EXPECT_TRUE(memory_.make_directories("db"));
    const std::vector<LeafEntry> entries = {{.key = "k", .value = {0, 0, 5}}};
    node_ = *encode_frame(kBtreeNodeMagic, encode_leaf_node(entries, {{"", "values"}}, 0), std::nullopt);
    EXPECT_TRUE(memory_.write_text("db/node", as_text(node_)));
    EXPECT_TRUE(memory_.write_text("db/values", "12345"));
  }

  NodePlace place(uint8_t height = 0, std::string inherited = "") const {
    return {.path = "node", .inherited = std::move(inherited), .location = {0, 0, node_.size()}, .height = height};
  }
  int64_t opened() const {
    return std::ranges::count(storage_.records(), Operation::kOpen, &FaultyStorage::Record::operation);
  }
  int64_t read() const {
    return std::ranges::count(storage_.records(), Operation::kRead, &FaultyStorage::Record::operation);
  }

  MemoryStorage memory_;
  FaultyStorage storage_{memory_};
  NodeLoader loader_{storage_, "db"};
  Bytes node_;
};

TEST_F(NodeLoaderTest, ReadsANodeOnce) {
  const auto first = *loader_.load(place(), "");
  const auto second = *loader_.load(place(), "k");
  EXPECT_EQ(first, second);
  EXPECT_EQ(read(), 1);
  EXPECT_THAT(first->paths, testing::ElementsAre("values"));
}

TEST_F(NodeLoaderTest, ChecksANodeAgainThatItHas) {
  ASSERT_TRUE(loader_.load(place(), ""));
  EXPECT_FALSE(loader_.load(place(1), ""));
  EXPECT_FALSE(loader_.load(place(), "l"));
}

TEST_F(NodeLoaderTest, ResolvesFilesAnewBelowAnotherBasePath) {
  ASSERT_TRUE(loader_.load(place(), ""));
  EXPECT_THAT((*loader_.load(place(0, "base/"), ""))->paths, testing::ElementsAre("base/values"));
}

TEST_F(NodeLoaderTest, DoesNotKeepWhatFailed) {
  storage_.add({.operation = Operation::kRead});
  const auto failed = loader_.load(place(), "");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind(), ErrorKind::kIo);
  EXPECT_TRUE(loader_.load(place(), ""));
}

TEST_F(NodeLoaderTest, KeepsFilesOpenButNotAllOfThem) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(memory_.write_text("db/" + std::to_string(i), "x"));
  for (int round = 0; round < 3; ++round) EXPECT_EQ(as_text(*loader_.read("values", 1, 3)), "234");
  EXPECT_EQ(opened(), 1);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(loader_.read(std::to_string(i), 0, 1));
  EXPECT_EQ(opened(), 101);
  ASSERT_TRUE(loader_.read("99", 0, 1));
  EXPECT_EQ(opened(), 101);
  ASSERT_TRUE(loader_.read("0", 0, 1));
  EXPECT_EQ(opened(), 102);
}

TEST_F(NodeLoaderTest, ServesSeveralThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(loader_.load(place(), ""));
        EXPECT_TRUE(loader_.read("values", 0, 5));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace maxport::ocdbt
