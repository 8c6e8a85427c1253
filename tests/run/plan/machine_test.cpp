#include "run/plan/machine.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/available_memory.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t MiB = 1024 * 1024;
const std::string cgroup_limit = "the cgroup's memory limit";

// A /proc and a /sys of our own, with 8000 MiB available.
class FakeRoot {
 public:
  FakeRoot() {
    file("proc/meminfo",
         "MemTotal:       16384000 kB\nMemFree:          100000 kB\n"
         "MemAvailable:    8192000 kB\nBuffers:             1234 kB\n");
  }
  FakeRoot& file(const std::string& name, const std::string& text) {
    write_file(folder_ / name, text);
    return *this;
  }
  FakeRoot& in_cgroup(const std::string& text) { return file("proc/self/cgroup", text); }
  FakeRoot& v2(const std::string& group, const std::string& most, std::size_t used) {
    file("sys/fs/cgroup" + group + "/memory.max", most + "\n");
    return file("sys/fs/cgroup" + group + "/memory.current", std::to_string(used) + "\n");
  }
  FakeRoot& v1(const std::string& group, std::size_t most, std::size_t used) {
    file("sys/fs/cgroup/memory" + group + "/memory.limit_in_bytes", std::to_string(most) + "\n");
    return file("sys/fs/cgroup/memory" + group + "/memory.usage_in_bytes", std::to_string(used) + "\n");
  }
  [[nodiscard]] Machine machine() const { return this_machine(folder_.path().string()); }
  [[nodiscard]] std::size_t own() const { return own_memory(folder_.path().string()); }

 private:
  TemporaryFolder folder_;
};

std::string bytes(std::size_t mib) { return std::to_string(mib * MiB); }

void check_memory(const FakeRoot& root, std::size_t mib, const std::string& limit) {
  const Machine m = root.machine();
  CHECK(m.memory == mib * MiB);
  CHECK(m.memory_limit == limit);
}

// The mask of a thread of our own is cut to so many of the CPUs that it has; -1 if it has too few.
int cpus_with_affinity(int count, const FakeRoot& root) {
  int seen = -1;
  std::thread([&] {
    cpu_set_t all, some;
    CPU_ZERO(&all);
    CPU_ZERO(&some);
    if (sched_getaffinity(0, sizeof all, &all) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&some) < count; ++cpu)
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &some);
    if (CPU_COUNT(&some) < count || sched_setaffinity(0, sizeof some, &some) != 0) return;
    seen = static_cast<int>(root.machine().cpus);
  }).join();
  return seen;
}

}  // namespace

TEST_CASE("machine: without a cgroup's limit, the memory is MemAvailable") {
  FakeRoot root;
  check_memory(root, 8000, "MemAvailable");
  root.in_cgroup("0::/\n");
  check_memory(root, 8000, "MemAvailable");
  root.v2("", "max", 1000 * MiB);
  check_memory(root, 8000, "MemAvailable");
  root.v2("", bytes(20000), 1000 * MiB);  // leaves more than the machine has
  check_memory(root, 8000, "MemAvailable");
}

TEST_CASE("machine: with no files at all nothing is made up") {
  const TemporaryFolder empty;
  const Machine m = this_machine(empty.path().string());
  CHECK(m.memory == 0);
  CHECK(m.memory_limit == "MemAvailable");
  CHECK(m.cpus >= 1);
  // A limit is no memory: what the machine itself has left is not known.
  write_file(empty / "sys/fs/cgroup/memory.max", bytes(100));
  write_file(empty / "sys/fs/cgroup/memory.current", bytes(10));
  CHECK(this_machine(empty.path().string()).memory == 0);
}

TEST_CASE("machine: the real one has memory") { CHECK(this_machine().memory > MiB); }

TEST_CASE("machine: cgroup v2 leaves its limit less what is used") {
  FakeRoot root;
  root.in_cgroup("0::/\n").v2("", bytes(2000), 500 * MiB);
  check_memory(root, 1500, cgroup_limit);
  root.v2("", bytes(2000), 2000 * MiB + 4096);  // over its limit for a moment: no wrap below zero
  check_memory(root, 0, cgroup_limit);
  root.file("sys/fs/cgroup/memory.current", "");  // what is used cannot be told
  check_memory(root, 8000, "MemAvailable");
}

TEST_CASE("machine: the tightest of a cgroup and its parents counts") {
  FakeRoot root;
  root.in_cgroup("0::/slice/job/step\n");
  root.v2("/slice/job/step", "max", 10 * MiB).v2("/slice", bytes(6000), 1000 * MiB);
  check_memory(root, 5000, cgroup_limit);
  root.v2("/slice/job", bytes(3000), 600 * MiB);
  check_memory(root, 2400, cgroup_limit);
  root.v2("/slice/job/step", bytes(2500), 10 * MiB);
  check_memory(root, 2400, cgroup_limit);
  root.v2("/slice/job/step", bytes(2000), 10 * MiB);
  check_memory(root, 1990, cgroup_limit);
  root.v2("", bytes(1200), 200 * MiB);  // the root of a container
  check_memory(root, 1000, cgroup_limit);
  root.v2("/elsewhere", bytes(100), 1 * MiB);
  check_memory(root, 1000, cgroup_limit);
}

TEST_CASE("machine: cgroup v1, alone or next to v2") {
  FakeRoot root;
  root.in_cgroup("5:memoryx:/wrong\n4:cpu,memory:/job/x\n1:name=systemd:/\n0::/\n");
  root.v1("/wrong", 1 * MiB, 0);
  check_memory(root, 8000, "MemAvailable");
  root.v1("/job/x", 9223372036854771712u, 50 * MiB);  // what v1 calls no limit
  check_memory(root, 8000, "MemAvailable");
  root.v1("/job", 4000 * MiB, 500 * MiB);
  check_memory(root, 3500, cgroup_limit);
  root.v1("/job/x", 3000 * MiB, 100 * MiB);
  check_memory(root, 2900, cgroup_limit);
  root.v2("", bytes(2000), 0);
  check_memory(root, 2000, cgroup_limit);
}

TEST_CASE("machine: a container that sees the host's path but only its own limit") {
  FakeRoot root;
  root.in_cgroup("4:memory:/docker/0123abc\n").v1("", 1000 * MiB, 100 * MiB);
  check_memory(root, 900, cgroup_limit);
}

TEST_CASE("machine: page cache that can be given up is not memory in use") {
  // As in MemAvailable. A data set that has been read once fills a container's limit with it.
  FakeRoot root;
  root.in_cgroup("4:memory:/job\n0::/\n").v2("", bytes(4000), 4000 * MiB);
  root.file("sys/fs/cgroup/memory.stat", "anon " + bytes(900) + "\nfile " + bytes(3100) + "\ninactive_file " +
                                             bytes(3000) + "\nactive_file " + bytes(100) + "\n");
  check_memory(root, 3100, cgroup_limit);
  root.v1("/job", 2000 * MiB, 1900 * MiB);
  root.file("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file " + bytes(600) +
                                                        "\ntotal_active_file " + bytes(400) + "\n");
  check_memory(root, 1100, cgroup_limit);
  root.file("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file " + bytes(9000) + "\n");
  check_memory(root, 2000, cgroup_limit);  // figures read one after the other need not fit together
}

TEST_CASE("machine: what a process has taken itself is known") {
  FakeRoot root;
  CHECK(root.own() == 0);
  root.file("proc/self/status", "Name:\tsluice\nVmRSS:\t  999 kB\nRssAnon:\t  300 kB\n");
  CHECK(root.own() == 300 * 1024);
  CHECK(own_memory() > 0);
}

TEST_CASE("machine: CPUs are those that the process may run on") {
  const FakeRoot root;
  CHECK(cpus_with_affinity(1, root) == 1);
  if (std::thread::hardware_concurrency() > 1) {
    const int two = cpus_with_affinity(2, root);
    CHECK((two == 2 || two == -1));
  }
}

TEST_CASE("machine: a CPU quota counts in whole cores, rounded up, and never adds any") {
  FakeRoot root;
  const unsigned all = root.machine().cpus;
  root.in_cgroup("0::/slice/job\n");
  const auto with_quota = [&](const std::string& text) {
    return root.file("sys/fs/cgroup/slice/job/cpu.max", text).machine().cpus;
  };
  CHECK(with_quota("100000 100000\n") == 1);
  CHECK(with_quota("1000 100000\n") == 1);  // a hundredth of a core is still a thread
  CHECK(with_quota("100001 100000\n") == std::min(2u, all));
  CHECK(with_quota("6400000 100000\n") == std::min(64u, all));
  CHECK(with_quota("max 100000\n") == all);
  CHECK(with_quota("17592186044415 1000\n") == all);  // more cores than an unsigned int holds
  CHECK(with_quota("") == all);
  CHECK(with_quota("100000 0\n") == all);
}

TEST_CASE("machine: a parent's CPU quota holds too") {
  FakeRoot root;
  root.in_cgroup("0::/slice/job\n").file("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  root.file("sys/fs/cgroup/slice/cpu.max", "50000 100000\n");
  CHECK(root.machine().cpus == 1);
}

TEST_CASE("machine: a CPU quota of cgroup v1, also beside one of v2") {
  FakeRoot root;
  const unsigned all = root.machine().cpus;
  root.in_cgroup("3:cpu,cpuacct:/slice/job\n2:cpuset:/wrong\n0::/\n");
  const auto with_quota = [&](const std::string& group, const std::string& quota, const std::string& period) {
    const std::string folder = "sys/fs/cgroup/cpu" + group;
    return root.file(folder + "/cpu.cfs_quota_us", quota)
        .file(folder + "/cpu.cfs_period_us", period)
        .machine()
        .cpus;
  };
  CHECK(with_quota("/wrong", "1000\n", "100000\n") == all);
  CHECK(with_quota("/slice/job", "-1\n", "100000\n") == all);  // what v1 calls no quota
  CHECK(with_quota("/slice/job", "6400000\n", "100000\n") == std::min(64u, all));
  CHECK(with_quota("/slice/job", "100001\n", "100000\n") == std::min(2u, all));
  CHECK(with_quota("/slice/job", "50000\n", "") == all);
  CHECK(with_quota("/slice/job", "50000\n", "0\n") == all);
  CHECK(with_quota("/slice/job", "50000\n", "100000\n") == 1);
  CHECK(with_quota("/slice/job", "-1\n", "100000\n") == all);
  CHECK(with_quota("/slice", "100000\n", "100000\n") == 1);  // a parent's
  CHECK(with_quota("/slice", "-1\n", "100000\n") == all);
  CHECK(root.file("sys/fs/cgroup/cpu.max", "100000 100000\n").machine().cpus == 1);
}
