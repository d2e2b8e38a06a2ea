#include "engine/finisher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <semaphore>

namespace maxport::engine {
namespace {

TEST(Finisher, RunsTasksInTheirOrderAndWaitsForAll) {
  std::vector<int> order;
  Finisher finisher(3);
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(finisher.add([&order, i]() -> Result<> {
      order.push_back(i);
      return {};
    }));
  ASSERT_TRUE(finisher.finish());
  ASSERT_EQ(order.size(), 200u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(Finisher, TellsTheFirstErrorOnceAndRunsNothingAfterIt) {
  std::atomic<int> ran{0};
  Finisher finisher(100);
  for (int i = 0; i < 10; ++i)
    (void)finisher.add([&ran, i]() -> Result<> {
      ++ran;
      return i == 3 ? fail(ErrorKind::kIo, "disk {}", i) : Result<>();
    });
  const Result<> status = finisher.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message(), "disk 3");
  EXPECT_EQ(ran, 4);
  EXPECT_FALSE(finisher.add([] { return Result<>(); }));
}

TEST(Finisher, MakesTheNextOneWaitWhenManyDo) {
  std::counting_semaphore<> go(0);
  std::atomic<int> added{0};
  Finisher finisher(2);
  std::jthread adding([&] {
    for (int i = 0; i < 6; ++i) {
      (void)finisher.add([&]() -> Result<> {
        go.acquire();
        return {};
      });
      ++added;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LE(added, 3);  // one that runs, two that wait
  go.release(6);
  adding.join();
  EXPECT_TRUE(finisher.finish());
  EXPECT_EQ(added, 6);
}

TEST(Finisher, EndsWithTasksLeft) {
  Finisher finisher(10);
  for (int i = 0; i < 5; ++i) (void)finisher.add([] { return Result<>(); });
}

}  // namespace
}  // namespace maxport::engine
