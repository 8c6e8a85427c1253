#include "run/plan/machine.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/available_memory.hpp"
#include "base/cgroup.hpp"

namespace sluice {
namespace {

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

  const std::string v2 = root + "/sys/fs/cgroup";
  m.cpus = cpus_within_quota(m.cpus, v2, cgroup_path(root, ""));
  m.cpus = cpus_within_quota(m.cpus, v2 + "/cpu", cgroup_path(root, "cpu"));

  const AvailableMemory memory = available_memory(root).value_or(AvailableMemory{0, "MemAvailable"});
  m.memory = memory.bytes;
  m.memory_limit = memory.limit;
  return m;
}

}  // namespace sluice
