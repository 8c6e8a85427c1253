// A bounded queue between two threads that may block. push() waits while it is full and pop() while it is
// empty; close() wakes both, after which nothing goes in and nothing comes out.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

namespace sluice {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t bound) : bound_(bound) {}

  // False if the queue was closed; the item is then dropped.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return closed_ || items_.size() < bound_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    filled_.notify_one();
    return true;
  }

  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (closed_) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    lock.unlock();
    room_.notify_one();
    return item;
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    filled_.notify_all();
    room_.notify_all();
  }

  // What was still inside when it closed; destroys it in the caller's thread.
  void clear() {
    std::deque<T> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(items_);
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  [[nodiscard]] std::size_t bound() const { return bound_; }

 private:
  const std::size_t bound_;
  mutable std::mutex mutex_;
  std::condition_variable filled_, room_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace sluice
