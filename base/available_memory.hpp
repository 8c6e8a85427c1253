// The memory that this process may still take: what the machine has left, or what a cgroup leaves of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace sluice {

struct AvailableMemory {
  std::size_t bytes = 0;
  std::string limit;  // what sets it, in words
};

// Nothing where the system does not tell. `root` is put before /proc and /sys, for tests.
[[nodiscard]] std::optional<AvailableMemory> available_memory(const std::string& root = "");

// What this process has taken already, without what it shares with the page cache: no longer available, but
// part of what is planned for it.
[[nodiscard]] std::size_t own_memory(const std::string& root = "");

}  // namespace sluice
