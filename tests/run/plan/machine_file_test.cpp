#include "run/plan/machine_file.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t GiB = std::size_t{1} << 30;

const std::string sound = R"(name = "box"
cpus = 16
memory = "62GiB"
gpus = 2
gpu_memory = "22.5GiB"
gpu_name = "some GPU"
)";

std::string refused(const std::string& text) {
  const Result<PlanMachine> machine = parse_machine(text, "box.toml");
  REQUIRE_FALSE(machine);
  return machine.error().text();
}

std::string without(const std::string& key) {
  std::string text = sound;
  const std::size_t at = text.find(key + " =");
  return text.erase(at, text.find('\n', at) + 1 - at);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("machine file: what it says") {
  const Result<PlanMachine> m = parse_machine(sound, "box.toml");
  REQUIRE_MESSAGE(m, m.error().text());
  CHECK(m->name == "box");
  CHECK(m->host.cpus == 16);
  CHECK(m->host.memory == 62 * GiB);
  CHECK(m->gpus == 2);
  CHECK(m->gpu_memory == 22 * GiB + GiB / 2);
  CHECK(m->gpu_name == "some GPU");
}

TEST_CASE("machine file: one without a GPU needs nothing about it") {
  const Result<PlanMachine> m = parse_machine("name = \"a\"\ncpus = 1\nmemory = \"1GiB\"\n", "a.toml");
  REQUIRE_MESSAGE(m, m.error().text());
  CHECK(m->gpus == 0);
  CHECK(m->gpu_memory == 0);
}

TEST_CASE("machine file: what is wrong is told with file and key") {
  for (const std::string key : {"name", "cpus", "memory", "gpu_memory", "gpu_name"})
    CHECK(has(refused(without(key)), "box.toml: " + key));
  CHECK(has(refused(sound + "cores = 3\n"), "box.toml: cores"));
  CHECK(has(refused(sound + "gpu_memry = 3\n"), "did you mean gpu_memory?"));
  CHECK(has(refused(without("cpus") + "cpus = 0\n"), "box.toml: cpus"));
  CHECK(has(refused(without("cpus") + "cpus = \"two\"\n"), "box.toml: cpus"));
  CHECK(has(refused(without("memory") + "memory = \"62G\"\n"), "box.toml: memory"));
  CHECK(has(refused(without("memory") + "memory = \"0GiB\"\n"), "box.toml: memory"));
  CHECK(has(refused("name = \"a\"\ncpus = = 1\n"), "box.toml:2"));
}

TEST_CASE("machine file: one that is not there is told") {
  const TemporaryFolder folder;
  const Result<PlanMachine> m = load_machine(folder / "none.toml");
  REQUIRE_FALSE(m);
  CHECK(has(m.error().text(), "none.toml"));
  CHECK(has(m.error().text(), "No such file"));
}

TEST_CASE("machine file: those in configs/machines are sound, and named as their files") {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("configs/machines")) {
    const Result<PlanMachine> m = load_machine(entry.path());
    REQUIRE_MESSAGE(m, m.error().text());
    CHECK(m->name == entry.path().stem().string());
    CHECK(m->gpus >= 1);
    names.insert(m->name);
  }
  CHECK(names.size() >= 4);
}
