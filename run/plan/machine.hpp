// What this process may use of the machine: CPUs (affinity and cgroup quota) and memory (MemAvailable and
// cgroup limit), whichever is less.
#pragma once

#include <cstddef>
#include <string>

namespace sluice {

struct Machine {
  unsigned cpus = 1;
  std::size_t memory = 0;    // bytes that may still be taken
  std::string memory_limit;  // what sets that limit, in words
};

// `root` is put before /proc and /sys, for tests.
[[nodiscard]] Machine this_machine(const std::string& root = "");

}  // namespace sluice
