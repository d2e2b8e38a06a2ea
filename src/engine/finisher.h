// Makes finished segments durable while the next ones are made: syncing waits for the disk, not for the processor.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace maxport::engine {

/// Runs tasks one after the other, in the order they came, on a thread of its own.
class Finisher {
 public:
  using Task = std::function<Result<>()>;

  /// At most `max_waiting` tasks wait; whoever adds another waits too, so that what is not durable yet stays bounded.
  explicit Finisher(size_t max_waiting);
  /// Drops what waits and ends the task that runs.
  ~Finisher();

  /// Fails when an earlier task failed; no later task runs then.
  Result<> add(Task task);
  /// Waits for all tasks. The first error, which is told once.
  Result<> finish();

 private:
  void work(std::stop_token stop);

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Task> waiting_;
  bool running_ = false;
  bool failed_ = false;
  Result<> error_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace maxport::engine
