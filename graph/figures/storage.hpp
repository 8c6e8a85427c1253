// What the reads say about the storage below them: whether a file takes long because each one does (latency:
// more at once brings more) or because they share what there is (bandwidth: more at once brings nothing).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/guarded.hpp"
#include "graph/figures/stats.hpp"

namespace sluice {

struct StorageFigures {
  static constexpr std::size_t levels = 12;
  struct Level {
    double reads = 0, seconds = 0, at_once = 0;  // sums
  };
  // Sums over files of seconds and bytes, for the line that fits best.
  double files = 0, bytes = 0, seconds = 0, bytes_squared = 0, bytes_seconds = 0;
  // By how many were under way when a read began: 1, 2 to 3, 4 to 7, ... Of the whole run: a property of the
  // storage, and only a start, a pause or a change of size shows the lower ones.
  std::array<Level, levels> by_load{};
  // More reads at once were tried, and whether that brought more.
  std::optional<bool> more_helps;

  [[nodiscard]] StorageFigures since(const StorageFigures& before) const;
};

// True: reads share a bandwidth that is used up.
[[nodiscard]] bool bandwidth_bound(const StorageFigures& figures);

// Written by the threads that read.
class StorageProfile {
 public:
  class Read {  // one file, from before it is opened to after its last byte
   public:
    explicit Read(StorageProfile& profile)
        : profile_(&profile), at_once_(profile.active_.fetch_add(1) + 1), begun_(now_ns()) {}
    ~Read() {
      if (profile_) profile_->active_.fetch_sub(1);
    }
    Read(Read&& other) noexcept
        : profile_(std::exchange(other.profile_, nullptr)), at_once_(other.at_once_), begun_(other.begun_) {}
    Read& operator=(Read&&) = delete;
    void done(std::size_t bytes) { profile_->add(bytes, now_ns() - begun_, at_once_); }

   private:
    StorageProfile* profile_;
    unsigned at_once_;
    Nanoseconds begun_;
  };

  void add(std::size_t bytes, Nanoseconds took, unsigned at_once);
  void tried(std::optional<bool> more_helps);
  [[nodiscard]] StorageFigures figures() const;

 private:
  std::atomic<unsigned> active_{0};
  mutable Mutex mutex_;
  StorageFigures sums_ GUARDED_BY(mutex_);
};

}  // namespace sluice
