// A bounded queue between two threads that may block. push() waits while it is full and pop() while it is
// empty; close() wakes both, after which nothing goes in and nothing comes out.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "base/guarded.hpp"

namespace sluice {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t bound) : bound_(bound) {}

  // False if the queue was closed; the item is then dropped.
  bool push(T item) {
    Lock lock(mutex_);
    room_.wait(mutex_, [this]() REQUIRES(mutex_) { return closed_ || items_.size() < bound_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    filled_.notify_one();
    return true;
  }

  std::optional<T> pop() {
    Lock lock(mutex_);
    filled_.wait(mutex_, [this]() REQUIRES(mutex_) { return closed_ || !items_.empty(); });
    if (closed_) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    lock.unlock();
    room_.notify_one();
    return item;
  }

  void close() {
    {
      const Lock lock(mutex_);
      closed_ = true;
    }
    filled_.notify_all();
    room_.notify_all();
  }

  // What was still inside when it closed; destroys it in the caller's thread.
  void clear() {
    std::deque<T> dropped;
    const Lock lock(mutex_);
    dropped.swap(items_);
  }

  [[nodiscard]] std::size_t size() const {
    const Lock lock(mutex_);
    return items_.size();
  }
  [[nodiscard]] std::size_t bound() const { return bound_; }

 private:
  const std::size_t bound_;
  mutable Mutex mutex_;
  Condition filled_, room_;
  std::deque<T> items_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice
