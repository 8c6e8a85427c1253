// The plans of the presets, as tests/plans holds them: a change to any figure shows as a change to a file.
// After one that is meant, write them anew from the repository's root and look at the difference:
//   SLUICE_UPDATE_GOLDEN=1 build/tests/run_tests -tc="plan golden*" && git diff tests/plans
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "run/plan/plan.hpp"

using namespace sluice;
namespace fs = std::filesystem;

namespace {

struct Case {
  const char *preset, *machine;
  unsigned devices;
  double rate;  // images/s of one device: made up, so that times are seen
};
constexpr Case cases[] = {
    {"single_gpu_full", "a10g-16c-62g", 1, 800}, {"conservative", "a10g-16c-62g", 1, 800},
    {"aggressive", "a10g-16c-62g", 1, 800},      {"aggressive_384", "a100-80g-12c-170g", 1, 2500},
    {"optimized_test", "a10g-16c-62g", 1, 0},    {"resnet_strikes_back", "8x-a100-80g-96c-1360g", 8, 2500}};

Plan plan_of(const Case& c) {
  PlanRequest r;
  r.config_name = std::string("configs/") + c.preset + ".toml";
  const Loaded loaded = load_config(r.config_name);
  REQUIRE(loaded.errors.empty());
  r.config = loaded.config;
  const Result<PlanMachine> machine = load_machine(std::string("configs/machines/") + c.machine + ".toml");
  REQUIRE(machine);
  r.machine = *machine;
  r.device = r.config.model.device;
  r.data = assumed_data(r.config);
  r.devices = c.devices;
  r.rate = c.rate;
  return make_plan(r);
}

void compare(const fs::path& file, const std::string& now) {
  if (std::getenv("SLUICE_UPDATE_GOLDEN")) std::ofstream(file, std::ios::binary) << now;
  std::ifstream in(file, std::ios::binary);
  std::ostringstream golden;
  golden << in.rdbuf();
  INFO(file.string(), " differs; the head of tests/run/plan/golden_test.cpp says how to write it anew");
  CHECK(now == golden.str());
}

}  // namespace

TEST_CASE("plan golden: the presets on their machines") {
  for (const Case& c : cases) {
    CAPTURE(c.preset);
    const Plan plan = plan_of(c);
    CHECK(plan.fits());
    const std::string name = std::string("tests/plans/") + c.preset + "." + c.machine;
    compare(name + ".txt", plan_text(plan));
    compare(name + ".json", plan_json(plan).dump(2) + "\n");
  }
}
