#include "cli/doctor/machine.hpp"

#include <sys/resource.h>

#include <fstream>

#include "base/text.hpp"

namespace sluice {
namespace {

constexpr std::size_t GiB = std::size_t{1} << 30;
constexpr std::uint64_t enough_files = 1024;  // 16 readers, sockets and what libraries open leave room

std::uint64_t limit(__rlimit_resource which) {
  rlimit found{};
  if (getrlimit(which, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return ProcessLimits::unlimited;
  return found.rlim_cur;
}

}  // namespace

ProcessLimits this_process() {
  ProcessLimits limits{limit(RLIMIT_MEMLOCK), limit(RLIMIT_NOFILE), limit(RLIMIT_AS), ""};
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::getline(in, limits.huge_pages);
  return limits;
}

void look_at_machine(Checklist& list, const Machine& machine, const ProcessLimits& limits) {
  const std::string cpus = std::to_string(machine.cpus) + (machine.cpus == 1 ? " CPU" : " CPUs");
  machine.cpus > 1 ? list.ok("CPUs", cpus + " may be used")
                   : list.warn("CPUs", "only " + cpus + " may be used",
                               "reading, decoding and training will take turns; raise the CPU limit");
  list.figure("cpus", machine.cpus);

  const std::string memory = readable_bytes(machine.memory) + " may be taken (" + machine.memory_limit + ")";
  machine.memory >= 4 * GiB ? list.ok("memory", memory)
                            : list.warn("memory", memory, "end other programs, or raise the limit");
  list.figure("bytes", static_cast<double>(machine.memory));
  if (limits.address_space != ProcessLimits::unlimited)
    list.warn("address space", "at most " + readable_bytes(limits.address_space),
              "libtorch maps far more than it uses; lift the limit with ulimit -v unlimited");

  if (limits.huge_pages.find("[never]") != std::string::npos)
    list.warn("huge pages", "switched off",
              "steps on the CPU are slower; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  else
    list.ok("huge pages", limits.huge_pages.empty() ? "the kernel does not tell" : limits.huge_pages);

  list.ok("locked memory", limits.locked == ProcessLimits::unlimited
                               ? "no limit"
                               : "at most " + readable_bytes(limits.locked) +
                                     " by the process itself; the GPU's driver pins batches on its own");
  const std::string files = limits.files == ProcessLimits::unlimited
                                ? "no limit"
                                : "at most " + std::to_string(limits.files) + " at once";
  limits.files >= enough_files ? list.ok("open files", files)
                               : list.warn("open files", files, "raise the limit: ulimit -n 4096");
}

}  // namespace sluice
