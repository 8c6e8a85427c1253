// Storage made slower than it is, to see what a run would do on such: a wait before each file, on the thread
// that reads it, and a bandwidth that all reads share, first come, first served.
#pragma once

#include "graph/flow/stages.hpp"

namespace sluice {

struct StorageSpeed {
  double latency_ms = 0;       // added to each file
  double megabytes_per_s = 0;  // of all reads together; 0: as it is
};

// When a transfer that is asked for now will be through. Not for two threads at once.
class SharedBandwidth {
 public:
  explicit SharedBandwidth(double megabytes_per_s) : megabytes_per_s_(megabytes_per_s) {}
  [[nodiscard]] Nanoseconds through(std::size_t bytes, Nanoseconds now);

 private:
  double megabytes_per_s_;
  Nanoseconds free_at_ = 0;
};

// The same stages over such storage; the big lane, which reads for itself, waits for its files as well.
[[nodiscard]] Stages slowed(Stages stages, const StorageSpeed& speed);

}  // namespace sluice
