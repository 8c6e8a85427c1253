// Counters of one node: items, busy time, time held up by a bound, queue depth, and a histogram of service
// times from which P50 and P99 come. Written by many threads with relaxed atomics; a snapshot is consistent
// enough to show.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "graph/trace.hpp"

namespace sluice {

using Nanoseconds = std::int64_t;

[[nodiscard]] inline Nanoseconds now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Log-linear: four buckets to each power of two, so a percentile is off by at most an eighth.
class Histogram {
 public:
  void add(Nanoseconds value);
  [[nodiscard]] Nanoseconds percentile(double share) const;  // 0 if empty

 private:
  static constexpr int sub = 4;
  std::array<std::atomic<std::uint32_t>, 64 * sub> buckets_{};
};

struct NodeFigures {
  std::string name;
  unsigned concurrency = 1;
  std::uint64_t items = 0;
  std::int64_t queued = 0, active = 0;
  Nanoseconds busy = 0;        // added up over all threads of the node
  Nanoseconds wait_input = 0;  // likewise: able to work, nothing to work on
  Nanoseconds wait_bound = 0;  // had an item, but a bound (credit, slot, full queue) held it up
  Nanoseconds p50 = 0, p99 = 0;
};

class NodeStats {
 public:
  NodeStats(std::string name, unsigned concurrency) : name_(std::move(name)), concurrency_(concurrency) {}

  void arrive() { queued_.fetch_add(1, std::memory_order_relaxed); }
  void leave_unserved() { queued_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] Nanoseconds begin();
  void end(Nanoseconds begun);
  void waited_for_bound(Nanoseconds time) { wait_bound_.fetch_add(time, std::memory_order_relaxed); }

  [[nodiscard]] NodeFigures figures(Nanoseconds elapsed) const;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
  unsigned concurrency_;
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::int64_t> queued_{0}, active_{0};
  std::atomic<Nanoseconds> busy_{0}, wait_bound_{0};
  Histogram service_;
};

// Counts one item as served for as long as it lives, and shows it to a profiler.
class Serving {
 public:
  explicit Serving(NodeStats& stats) : trace_(stats.name()), stats_(stats), begun_(stats.begin()) {}
  ~Serving() { stats_.end(begun_); }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

 private:
  Trace trace_;
  NodeStats& stats_;
  Nanoseconds begun_;
};

}  // namespace sluice
