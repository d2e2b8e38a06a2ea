// A cache that forgets what was not used for longest. Safe for any number of threads.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>

namespace maxport::ocdbt {

template <class Key, class Value>
class LruCache {
 public:
  /// Keeps values while their costs sum up to at most `max_cost`; the last one is kept whatever it costs.
  explicit LruCache(uint64_t max_cost) : max_cost_(max_cost) {}

  /// Null when it is not there.
  std::shared_ptr<const Value> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = items_.find(key);
    if (found == items_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second.place);
    return found->second.value;
  }

  void insert(const Key& key, std::shared_ptr<const Value> value, uint64_t cost) {
    const std::lock_guard lock(mutex_);
    if (items_.contains(key)) return;
    order_.push_front(key);
    items_.emplace(key, Item{std::move(value), cost, order_.begin()});
    cost_ += cost;
    while (cost_ > max_cost_ && items_.size() > 1) {
      const auto oldest = items_.find(order_.back());
      cost_ -= oldest->second.cost;
      items_.erase(oldest);
      order_.pop_back();
    }
  }

 private:
  struct Item {
    std::shared_ptr<const Value> value;
    uint64_t cost;
    typename std::list<Key>::iterator place;
  };

  const uint64_t max_cost_;
  std::mutex mutex_;
  uint64_t cost_ = 0;
  std::list<Key> order_;  // most recently used first
  std::map<Key, Item> items_;
};

}  // namespace maxport::ocdbt
