#include "cli/machine.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

namespace sluice {
namespace {

std::optional<std::size_t> number_in(const std::string& file) {
  std::ifstream in(file);
  std::size_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // no such file, or "max"
}

std::size_t mem_available(const std::string& root) {
  std::ifstream in(root + "/proc/meminfo");
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string key;
    std::size_t kib = 0;
    if (words >> key >> kib && key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

// The cgroup of this process below its controller's mount: "/" inside most containers.
std::string cgroup_path(const std::string& root, const std::string& controller) {
  std::ifstream in(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controller.empty() ? names == ",," : names.find("," + controller + ",") != std::string::npos)
      return line.substr(second + 1);
  }
  return "/";
}

// The tightest room that a cgroup or one of its parents leaves.
std::optional<std::size_t> cgroup_room(const std::string& mount, std::string path, const char* limit, const char* usage) {
  std::optional<std::size_t> room;
  for (;; path = path.substr(0, path.rfind('/'))) {
    const std::string folder = mount + (path == "/" ? "" : path) + "/";
    const auto most = number_in(folder + limit), used = number_in(folder + usage);
    if (most && used && *most < (std::size_t{1} << 60)) {
      const std::size_t left = *most > *used ? *most - *used : 0;
      room = std::min(room.value_or(left), left);
    }
    if (path.empty() || path == "/") return room;
  }
}

}  // namespace

Machine this_machine(const std::string& root) {
  Machine m;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) m.cpus = static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));

  const std::string v2 = root + "/sys/fs/cgroup" + cgroup_path(root, "");
  std::ifstream quota(v2 + "/cpu.max");
  double most = 0, period = 0;
  if (quota >> most >> period && period > 0)
    m.cpus = std::clamp(static_cast<unsigned>(std::ceil(most / period)), 1u, m.cpus);

  m.memory = mem_available(root);
  m.memory_limit = "MemAvailable";
  const auto tighten = [&](std::optional<std::size_t> room) {
    if (!room || *room >= m.memory) return;
    m.memory = *room;
    m.memory_limit = "the cgroup's memory limit";
  };
  tighten(cgroup_room(root + "/sys/fs/cgroup", cgroup_path(root, ""), "memory.max", "memory.current"));
  tighten(cgroup_room(root + "/sys/fs/cgroup/memory", cgroup_path(root, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"));
  return m;
}

}  // namespace sluice
