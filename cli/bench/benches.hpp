// The sub-commands of `bench`.
#pragma once

#include <sys/resource.h>

#include "cli/options.hpp"

namespace sluice {

Run add_bench_data(Options& to);  // the data path against a bare full decode of the same files
Run add_bench_feed(Options& to);  // how well the data path feeds a consumer of a given speed
Run add_bench_step(Options& to);  // the time of a training step by itself, on a batch of noise in memory

// What this process has taken so far.
inline rusage usage() {
  rusage taken{};
  getrusage(RUSAGE_SELF, &taken);
  return taken;
}

}  // namespace sluice
