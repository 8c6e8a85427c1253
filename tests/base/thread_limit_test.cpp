#include "base/thread_limit.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <system_error>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The soft limit of this process while this lives.
class UserLimit {
 public:
  explicit UserLimit(rlim_t most) {
    REQUIRE(getrlimit(RLIMIT_NPROC, &before_) == 0);
    const rlimit now{std::min(most, before_.rlim_max), before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NPROC, &now) == 0);
  }
  ~UserLimit() { setrlimit(RLIMIT_NPROC, &before_); }
  UserLimit(const UserLimit&) = delete;
  UserLimit& operator=(const UserLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("thread limit: the cgroup's that is met, whichever of its parents has it, else the user's") {
  const TemporaryFolder root;
  const UserLimit user(5000);
  const auto limit = [&] { return thread_limit(root.path().string()); };
  CHECK(has(limit(), "5000 processes and threads of this user (RLIMIT_NPROC, ulimit -u)"));
  write_file(root / "proc/self/cgroup", "5:pids:/job/task\n0::/unit\n");
  const auto set = [&](const std::string& folder, const std::string& most, const std::string& now) {
    write_file(root / ("sys/fs/cgroup/" + folder + "/pids.max"), most + "\n");
    write_file(root / ("sys/fs/cgroup/" + folder + "/pids.current"), now + "\n");
  };
  set("unit", "max", "900");
  set("pids/job/task", "200", "60");
  CHECK(has(limit(), "5000 processes"));
  set("pids/job", "64", "64");
  CHECK(limit() == "the limit is 64 processes and threads of the cgroup (/sys/fs/cgroup/pids/job/pids.max)");
  set("pids/job", "64", "10");
  set("unit", "900", "900");
  CHECK(has(limit(), "900 processes and threads of the cgroup (/sys/fs/cgroup/unit/pids.max)"));
}

TEST_CASE("thread limit: of errors, those of threads alone say which limit it is") {
  const UserLimit user(5000);
  const std::system_error none(std::make_error_code(std::errc::resource_unavailable_try_again));
  const Error told = as_error("train", none);
  CHECK(has(told.text(), "train: threads: no more can be made: the limit is "));
  CHECK_FALSE(has(told.text(), "temporarily unavailable"));
  CHECK(as_error("train", std::runtime_error("other")).text() == "train: other");
  CHECK(as_error("", std::runtime_error("other")).text() == "other");
  // filesystem_error quotes names that others gave.
  CHECK(as_error("train", std::runtime_error("a\nerror: lost\x1b[2J")).text() ==
        "train: a\\nerror: lost\\x1b[2J");
}

TEST_CASE("thread limit: threads that can be made are made, and gone again") {
  CHECK(can_make_threads(0));
  CHECK(can_make_threads(40));
}
