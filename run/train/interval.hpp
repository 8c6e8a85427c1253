// Rates of a phase: since its start, and since they were last asked for.
#pragma once

#include <cstdint>

#include "graph/figures/stats.hpp"

namespace sluice {

class Interval {
 public:
  struct Figures {
    double seconds = 0, images_per_s = 0, step_ms = 0;
    double data_wait = 0;  // share of the time that step waited for a batch
    std::uint64_t batches = 0;
  };

  void start() { all_ = recent_ = {now_ns(), 0, 0, 0}; }
  [[nodiscard]] bool started() const { return all_.since != 0; }
  // Called with the first thing known of a batch: time spent waiting for the first one belongs to the phase
  // too.
  void waited(Nanoseconds time) {
    if (all_.batches == 0) all_.since -= time, recent_.since -= time;
    all_.waited += time, recent_.waited += time;
  }
  void images(std::uint64_t count) {
    all_.images += count, recent_.images += count;
    ++all_.batches, ++recent_.batches;
  }
  [[nodiscard]] Figures whole() const { return figures(all_); }
  [[nodiscard]] Figures since_last() {
    const Figures f = figures(recent_);
    recent_ = {now_ns(), 0, 0, 0};
    return f;
  }

 private:
  struct Counts {
    Nanoseconds since = 0, waited = 0;
    std::uint64_t images = 0, batches = 0;
  };
  static Figures figures(const Counts& c) {
    Figures f;
    f.seconds = static_cast<double>(now_ns() - c.since) * 1e-9;
    f.batches = c.batches;
    if (f.seconds <= 0) return f;
    f.images_per_s = static_cast<double>(c.images) / f.seconds;
    f.step_ms = c.batches ? f.seconds * 1e3 / static_cast<double>(c.batches) : 0;
    f.data_wait = static_cast<double>(c.waited) * 1e-9 / f.seconds;
    return f;
  }
  Counts all_, recent_;
};

}  // namespace sluice
