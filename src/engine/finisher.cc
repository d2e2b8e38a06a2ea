#include "engine/finisher.h"

namespace maxport::engine {

Finisher::Finisher(size_t max_waiting)
    : max_waiting_(max_waiting), thread_([this](std::stop_token stop) { work(std::move(stop)); }) {}

Finisher::~Finisher() = default;

Result<> Finisher::add(Task task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failed_ || waiting_.size() < max_waiting_; });
  if (failed_) return fail(ErrorKind::kInterrupted, "stopped");
  waiting_.push_back(std::move(task));
  changed_.notify_all();
  return {};
}

Result<> Finisher::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failed_ || (waiting_.empty() && !running_); });
  return std::exchange(error_, Result<>());
}

void Finisher::work(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !waiting_.empty() && !failed_; })) {
    const Task task = std::move(waiting_.front());
    waiting_.pop_front();
    running_ = true;
    lock.unlock();
    Result<> status = task();
    lock.lock();
    running_ = false;
    if (!status) {
      failed_ = true;
      error_ = std::move(status);
    }
    changed_.notify_all();
  }
}

}  // namespace maxport::engine
