#include "base/available_memory.hpp"

#include <algorithm>
#include <array>
#include <fstream>
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

// From a file with a key and a number on each line.
std::optional<std::size_t> value_of(const std::string& file, const std::string& wanted) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string key;
    std::size_t value = 0;
    if (words >> key >> value && key == wanted) return value;
  }
  return std::nullopt;
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
    for (const char* kind : files.cache) cache += value_of(folder + "memory.stat", kind).value_or(0);
    const std::size_t used = *usage - std::min(cache, *usage);
    const std::size_t left = *most > used ? *most - used : 0;
    room = std::min(room.value_or(left), left);
  }
  return room;
}

}  // namespace

std::optional<AvailableMemory> available_memory(const std::string& root) {
  const std::optional<std::size_t> machine = value_of(root + "/proc/meminfo", "MemAvailable:");
  if (!machine) return std::nullopt;
  AvailableMemory memory{*machine * 1024, "MemAvailable"};
  const auto tighten = [&](std::optional<std::size_t> room) {
    if (room && *room < memory.bytes) memory = {*room, "the cgroup's memory limit"};
  };
  const std::string v2 = root + "/sys/fs/cgroup";
  tighten(cgroup_room(v2, cgroup_path(root, ""),
                      {"memory.max", "memory.current", {"inactive_file", "active_file"}}));
  tighten(cgroup_room(
      v2 + "/memory", cgroup_path(root, "memory"),
      {"memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}}));
  return memory;
}

std::size_t own_memory(const std::string& root) {
  return value_of(root + "/proc/self/status", "RssAnon:").value_or(0) * 1024;
}

}  // namespace sluice
