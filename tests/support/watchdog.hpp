// Ends the process with a message if a test hangs: generous, because a loaded machine is slow but a hang is
// for ever.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace sluice::test {

class Watchdog {
 public:
  explicit Watchdog(std::string what, std::chrono::seconds limit = std::chrono::seconds(60))
      : thread_([this, what = std::move(what), limit] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, limit, [this] { return over_; })) return;
          std::fprintf(stderr, "watchdog: %s hangs\n", what.c_str());
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace sluice::test
