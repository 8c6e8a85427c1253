#include "base/thread_limit.hpp"

#include <sys/resource.h>

#include <fstream>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cgroup.hpp"
#include "base/guarded.hpp"
#include "base/printable.hpp"

namespace sluice {
namespace {

constexpr const char* hint = "raise the limit, or lower pipeline.read_threads and other numbers of threads";

std::optional<std::size_t> number_in(const std::string& file) {
  std::ifstream in(file);
  std::size_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // no such file, or "max"
}

struct CgroupLimit {
  std::size_t most = 0;
  std::string file;
  bool met = false;
};

// The one that is met, else the tightest.
std::optional<CgroupLimit> cgroup_limit(const std::string& root) {
  const std::string unified = root + "/sys/fs/cgroup";
  std::vector<std::string> folders = with_parents(unified, cgroup_path(root, ""));
  for (std::string& folder : with_parents(unified + "/pids", cgroup_path(root, "pids")))
    folders.push_back(std::move(folder));
  std::optional<CgroupLimit> found;
  for (const std::string& folder : folders) {
    const auto most = number_in(folder + "pids.max"), current = number_in(folder + "pids.current");
    if (!most || !current) continue;
    const CgroupLimit limit{*most, folder.substr(root.size()) + "pids.max", *current >= *most};
    if (!found || (limit.met && !found->met) || (limit.met == found->met && limit.most < found->most))
      found = limit;
  }
  return found;
}

std::string of_cgroup(const CgroupLimit& limit) {
  return "the limit is " + std::to_string(limit.most) + " processes and threads of the cgroup (" +
         limit.file + ")";
}

}  // namespace

std::string thread_limit(const std::string& root) {
  const std::optional<CgroupLimit> cgroup = cgroup_limit(root);
  if (cgroup && cgroup->met) return of_cgroup(*cgroup);
  rlimit user{};
  if (getrlimit(RLIMIT_NPROC, &user) == 0 && user.rlim_cur != RLIM_INFINITY)
    return "the limit is " + std::to_string(user.rlim_cur) +
           " processes and threads of this user (RLIMIT_NPROC, ulimit -u)";
  if (cgroup) return of_cgroup(*cgroup);
  rlimit space{};  // of their stacks
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    return "the limit is " + std::to_string(space.rlim_cur / 1024) +
           " KiB of address space (RLIMIT_AS, ulimit -v)";
  const auto machine = number_in(root + "/proc/sys/kernel/threads-max");
  return machine ? "the limit is " + std::to_string(*machine) +
                       " threads of this machine (/proc/sys/kernel/threads-max)"
                 : "its limit is not known";
}

Error as_error(const std::string& stage, const std::exception& exception) {
  const auto* system = dynamic_cast<const std::system_error*>(&exception);
  if (system && system->code() == std::errc::resource_unavailable_try_again)
    return {stage, "threads", "no more can be made: " + thread_limit(), hint};
  return {stage, "", printable(exception.what()), ""};
}

Status can_make_threads(unsigned count) {
  struct {
    Mutex mutex;
    Condition changed;
    bool over GUARDED_BY(mutex) = false;
  } end;
  std::vector<std::thread> threads;
  threads.reserve(count);
  Status made = Done{};
  try {
    while (threads.size() < count)
      threads.emplace_back([&] {
        const Lock lock(end.mutex);
        end.changed.wait(end.mutex, [&]() REQUIRES(end.mutex) { return end.over; });
      });
  } catch (const std::system_error& error) {  // the others are still there: the limit is met now
    made = as_error("plan", error);
    made.error().cause = std::to_string(count) + " are needed, and only " + std::to_string(threads.size()) +
                         " can be made: " + thread_limit();
  }
  {
    const Lock lock(end.mutex);
    end.over = true;
  }
  end.changed.notify_all();
  for (std::thread& thread : threads) thread.join();
  return made;
}

}  // namespace sluice
