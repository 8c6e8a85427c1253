// Promise 1 from outside: a real training takes no more memory than `sluice plan` says. Its peak is compared,
// and where this process's memory cgroup may be given children (v1 or v2; SLUICE_TEST_CGROUP names another
// one's folder), it runs in one whose limit is the plan's total: the kernel kills it if it takes more.
#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "tests/program/workshop.hpp"

using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

// A memory cgroup for one run, removed with it.
class Cgroup {
 public:
  Cgroup(const fs::path& parent, std::size_t limit)
      : folder_(parent / ("sluice-test-" + std::to_string(getpid()))) {
    std::error_code refused;
    if (!fs::create_directory(folder_, refused)) return;
    const bool v2 = fs::exists(folder_ / "memory.max");
    good_ = put(v2 ? "memory.max" : "memory.limit_in_bytes", std::to_string(limit));
    if (v2) put("memory.swap.max", "0");
  }
  ~Cgroup() {
    std::error_code ignored;
    fs::remove(folder_, ignored);
  }
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  [[nodiscard]] bool good() const { return good_; }
  // The words that run `words` inside it.
  [[nodiscard]] std::vector<std::string> inside(std::vector<std::string> words) const {
    const std::string procs = (folder_ / "cgroup.procs").string();
    words.insert(words.begin(), {"/bin/sh", "-c", "echo $$ > " + procs + " && exec \"$@\"", "sh"});
    return words;
  }

 private:
  bool put(const char* file, const std::string& text) {
    std::ofstream out(folder_ / file, std::ios::in | std::ios::out);  // never makes one: the kernel does
    out << text << std::flush;
    return out.good();
  }
  fs::path folder_;
  bool good_ = false;
};

// The memory cgroup of this process, v1 before v2; an empty path if it cannot be seen.
fs::path own_cgroup() {
  std::ifstream in("/proc/self/cgroup");
  fs::path unified;
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string name = line.substr(second + 2);  // without its leading slash
    if (controllers == "memory") return fs::path("/sys/fs/cgroup/memory") / name;
    if (controllers.empty()) unified = fs::path("/sys/fs/cgroup") / name;
  }
  return unified;
}

std::size_t planned(const Workshop& shop, std::vector<std::string> words) {
  words.insert(words.begin(), {"plan", "tiny.toml", "--json"});
  const Ended ended = shop.run(words);
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  return nlohmann::json::parse(ended.out)["ram"]["total_bytes"];
}

// Trains, and holds what it took against the plan.
void check_within_plan(const Workshop& shop, const std::vector<std::string>& sets,
                       const std::vector<std::string>& more = {}) {
  const std::size_t total = planned(shop, sets);
  // The limit is the plan's total to the byte, and what the kernel takes for the process is counted there
  // too.
  std::vector<std::string> words{std::getenv("SLUICE_BINARY"), "train", "tiny.toml", "--set",
                                 "budget.enforce=false"};
  words.insert(words.end(), sets.begin(), sets.end());
  words.insert(words.end(), more.begin(), more.end());
  const char* wanted = std::getenv("SLUICE_TEST_CGROUP");
  const fs::path parent = wanted ? fs::path(wanted) : own_cgroup();
  const Cgroup cgroup(parent, total);
  if (cgroup.good())
    words = cgroup.inside(words);
  else if (wanted)
    FAIL("no limit can be set below ", wanted);
  else
    MESSAGE("no memory cgroup can be made below ", parent.string(), ": the peak alone is compared");
  const Ended ended = run_program(words, shop.folder.path());
  INFO(ended.err);
  CHECK(ended.code == 0);
  INFO("planned ", total >> 20, " MiB, taken ", ended.peak_bytes >> 20, " MiB");
  CHECK(ended.peak_bytes <= total);
  CHECK(ended.peak_bytes > total / 2);  // an estimate that holds anything says nothing
  CHECK_FALSE(has(ended.err, "were planned"));
}

// Checkpoints in a file system in memory would be counted as the run's.
const fs::path disk = "/var/tmp";

const std::vector<std::string> more_work{"--set", "data.image_size=160", "--set", "data.val_resize=176",
                                         "--set", "train.batch=24",      "--set", "budget.ram=96MiB",
                                         "--set", "train.epochs=4",      "--set", "optim.lr=0.001"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_SUITE_BEGIN("long");

TEST_CASE("memory: a training with validation and checkpoints stays within its plan") {
  const Workshop shop(disk);
  check_within_plan(shop, more_work);
}

TEST_CASE("memory: recomputed, averaged, and with more threads") {
  const Workshop shop(disk);
  check_within_plan(shop, with(more_work, {"--set", "model.recompute=true"}));
  check_within_plan(shop, with(more_work, {"--set", "optim.ema=0.99"}));
  check_within_plan(shop, with(more_work, {"--set", "train.threads=2"}));
}

TEST_CASE("memory: a resumed training stays within its plan") {
  const Workshop shop(disk);
  const std::vector<std::string> named = with(more_work, {"--set", "log.name=a"});
  check_within_plan(shop, named);
  check_within_plan(shop, with(named, {"--set", "train.epochs=6"}), {"--resume", "auto"});
}

TEST_CASE("memory: a larger network") {
  const Workshop shop(disk);
  check_within_plan(shop, with(more_work, {"--set", "model.arch=resnet50", "--set", "train.batch=12"}));
}

TEST_SUITE_END();
