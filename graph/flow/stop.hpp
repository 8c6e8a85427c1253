// Cancellation: one flag for the whole run, the first failure that raised it, and a way to wake whoever
// waits. Waiting never outlives a stop: sleepers use pause(), queues register a waker.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "base/guarded.hpp"
#include "base/result.hpp"

namespace sluice {

class Stop {
 public:
  [[nodiscard]] bool requested() const { return requested_.load(std::memory_order_acquire); }

  void request();          // end the run; not a failure
  void fail(Error error);  // end the run; the first failure is the one that is reported
  [[nodiscard]] std::optional<Error> failure() const;

  // Sleeps, but no longer than until a stop. True if the time passed undisturbed.
  bool pause(std::chrono::nanoseconds time) const;

  // Called once when the run stops, on the thread that stops it. Register before the run starts.
  void on_stop(std::function<void()> wake) { wakers_.push_back(std::move(wake)); }

 private:
  std::atomic<bool> requested_{false};
  mutable Mutex mutex_;
  mutable Condition changed_;
  std::optional<Error> failure_ GUARDED_BY(mutex_);
  std::vector<std::function<void()>> wakers_;
};

}  // namespace sluice
