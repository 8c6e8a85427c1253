#include "run/plan/machine.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/cgroup.hpp"

namespace sluice {
namespace {

std::optional<std::size_t> number_in(const std::string& file) {
  std::ifstream in(file);
  std::size_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // no such file, or "max"
}

// From a file with a key and a number on each line; 0 if it is not there.
std::size_t value_of(const std::string& file, const std::string& wanted) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string key;
    std::size_t value = 0;
    if (words >> key >> value && key == wanted) return value;
  }
  return 0;
}

struct MemoryFiles {
  const char *limit, *usage;
  // In memory.stat: page cache, which counts as usage and goes back when asked for, used often or not.
  std::array<const char*, 2> cache;
};

// The tightest room that a cgroup or one of its parents leaves.
std::optional<std::size_t> cgroup_room(const std::string& mount, const std::string& path,
                                       const MemoryFiles& files) {
  std::optional<std::size_t> room;
  for (const std::string& folder : with_parents(mount, path)) {
    const auto most = number_in(folder + files.limit), usage = number_in(folder + files.usage);
    if (!most || !usage || *most >= (std::size_t{1} << 60)) continue;
    std::size_t cache = 0;
    for (const char* kind : files.cache) cache += value_of(folder + "memory.stat", kind);
    const std::size_t used = *usage - std::min(cache, *usage);
    const std::size_t left = *most > used ? *most - used : 0;
    room = std::min(room.value_or(left), left);
  }
  return room;
}

unsigned whole_cores(unsigned cpus, double quota, double period) {
  if (quota <= 0 || period <= 0) return cpus;  // v1 writes -1 for no quota
  return static_cast<unsigned>(std::clamp(std::ceil(quota / period), 1.0, static_cast<double>(cpus)));
}

// The tightest quota of a cgroup or one of its parents: in one file of v2, in two of v1.
unsigned cpus_within_quota(unsigned cpus, const std::string& mount, const std::string& path) {
  for (const std::string& folder : with_parents(mount, path)) {
    std::ifstream quota(folder + "cpu.max");
    double most = 0, period = 0;
    if (quota >> most >> period) cpus = whole_cores(cpus, most, period);
    std::ifstream old_quota(folder + "cpu.cfs_quota_us"), old_period(folder + "cpu.cfs_period_us");
    if (old_quota >> most && old_period >> period) cpus = whole_cores(cpus, most, period);
  }
  return cpus;
}

}  // namespace

Machine this_machine(const std::string& root) {
  Machine m;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    m.cpus = static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));

  const std::string v2 = root + "/sys/fs/cgroup", v2_path = cgroup_path(root, "");
  m.cpus = cpus_within_quota(m.cpus, v2, v2_path);
  m.cpus = cpus_within_quota(m.cpus, v2 + "/cpu", cgroup_path(root, "cpu"));

  m.memory = value_of(root + "/proc/meminfo", "MemAvailable:") * 1024;
  m.memory_limit = "MemAvailable";
  const auto tighten = [&](std::optional<std::size_t> room) {
    if (!room || *room >= m.memory) return;
    m.memory = *room;
    m.memory_limit = "the cgroup's memory limit";
  };
  tighten(cgroup_room(v2, v2_path, {"memory.max", "memory.current", {"inactive_file", "active_file"}}));
  tighten(cgroup_room(
      v2 + "/memory", cgroup_path(root, "memory"),
      {"memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}}));
  return m;
}

}  // namespace sluice
