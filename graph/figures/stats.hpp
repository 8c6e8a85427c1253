// Counters of one node: items, busy time, time held up by a bound, queue depth, and a histogram of service
// times from which P50 and P99 come. Written by many threads with relaxed atomics; a snapshot is consistent
// enough to show.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/guarded.hpp"
#include "base/trace.hpp"
#include "graph/figures/nodes.hpp"

namespace sluice {

using Nanoseconds = std::int64_t;

[[nodiscard]] inline Nanoseconds now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Log-linear counts of times: four buckets to each power of two, so a percentile is off by at most an eighth.
struct TimeCounts {
  static constexpr std::size_t sub = 4;
  std::array<std::uint32_t, 64 * sub> buckets{};
  [[nodiscard]] Nanoseconds percentile(double share) const;  // 0 if empty
  [[nodiscard]] TimeCounts since(const TimeCounts& before) const;
};

class Histogram {
 public:
  void add(Nanoseconds value);
  [[nodiscard]] TimeCounts counts() const;
  [[nodiscard]] Nanoseconds percentile(double share) const { return counts().percentile(share); }

 private:
  std::array<std::atomic<std::uint32_t>, 64 * TimeCounts::sub> buckets_{};
};

// Time that one thread, or one serial node, spends waiting; what still lasts counts too. A snapshot taken
// while a wait ends may miss it, and the next one has it: it is never counted twice.
class WaitTime {
 public:
  void begin(Nanoseconds now) { since_.store(now, std::memory_order_release); }
  void end(Nanoseconds now) {
    if (const Nanoseconds since = since_.exchange(0, std::memory_order_acq_rel)) add(now - since);
  }
  void add(Nanoseconds time) { total_.fetch_add(time, std::memory_order_acq_rel); }
  [[nodiscard]] bool waiting() const { return since_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] Nanoseconds sum(Nanoseconds now) const;

 private:
  std::atomic<Nanoseconds> total_{0}, since_{0};  // since when; 0: not waiting
};

struct NodeFigures {
  NodeId id = {};
  unsigned concurrency = 1;
  std::uint64_t items = 0;
  std::int64_t queued = 0, active = 0;
  Nanoseconds available = 0;   // time of all threads of the node together
  Nanoseconds busy = 0;        // of that, at work
  Nanoseconds wait_input = 0;  // able to work, nothing to work on
  Nanoseconds wait_bound = 0;  // had an item, but a bound (credit, slot, full queue) held it up
  Nanoseconds p50 = 0, p99 = 0;
  TimeCounts times = {};
};

class NodeStats {
 public:
  explicit NodeStats(NodeId id, unsigned concurrency = 1) : id_(id), concurrency_(concurrency) {}

  void arrive() { queued_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] Nanoseconds begin();
  void end(Nanoseconds begun);
  void waited_for_bound(Nanoseconds time) { bound_.add(time); }
  [[nodiscard]] WaitTime& held_up() { return bound_; }
  // For a node whose waits are measured; of others it is the time in which they did nothing else.
  [[nodiscard]] WaitTime& starved() { return measured_ = true, input_; }
  // The node has so many threads from now on. On one thread.
  void resize(unsigned concurrency, Nanoseconds elapsed);

  [[nodiscard]] NodeFigures figures(Nanoseconds elapsed) const;
  [[nodiscard]] NodeId id() const { return id_; }

 private:
  const NodeId id_;
  mutable Mutex sized_;
  unsigned concurrency_ GUARDED_BY(sized_);
  Nanoseconds missing_ GUARDED_BY(sized_) = 0;  // threads' time that was not there before they were
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::int64_t> queued_{0}, active_{0};
  std::atomic<Nanoseconds> busy_{0};
  std::atomic<bool> measured_{false};
  WaitTime bound_, input_;
  Histogram service_;
};

// Counts one item as served for as long as it lives, and shows it to a profiler.
class Serving {
 public:
  explicit Serving(NodeStats& stats) : trace_(name_of(stats.id())), stats_(stats), begun_(stats.begin()) {}
  ~Serving() { stats_.end(begun_); }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

 private:
  Trace trace_;
  NodeStats& stats_;
  Nanoseconds begun_;
};

}  // namespace sluice
