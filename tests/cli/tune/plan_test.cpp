#include "cli/tune/plan.hpp"

#include <doctest/doctest.h>

#include "nodes/source/folder.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t GiB = std::size_t{1} << 30;

struct Tree {
  Tree() {
    for (const char* split : {"train", "val"})
      for (const char* name : {"ant", "bee"})
        write_file(folder.path() / split / name / "1.JPEG", std::string("x"));
  }
  [[nodiscard]] DataSets scan() const {
    const auto scanned = [&](const char* split) {
      return std::make_shared<ImageFolder>(*ImageFolder::scan((folder / split).string(), {}));
    };
    return {scanned("train"), scanned("val")};
  }
  TemporaryFolder folder;
};

}  // namespace

TEST_CASE("tune plan: settles what is \"auto\", and keeps what is given") {
  const Tree tree;
  Config config;
  config.train.batch = 8;
  config.pipeline.prefetch = 3;
  const Result<RunPlan> plan = plan_trial(config, {{8, 64 * GiB, "MemAvailable"}, "cpu", 0}, tree.scan());
  REQUIRE(plan);
  const TuneSetting setting = settled(config, *plan);
  CHECK(setting.batch == 8);
  CHECK(setting.prefetch == 3);
  CHECK(setting.decode_threads == 2);
  CHECK(setting.torch_threads == 8);
  CHECK(setting.read_ahead > 0);
}

TEST_CASE("tune plan: what does not fit into RAM or VRAM is refused before a trial") {
  const Tree tree;
  const DataSets sets = tree.scan();
  Config config;
  config.budget.ram = Size{512u << 20};
  const auto on_cpu = [&](std::int64_t batch, std::size_t memory) {
    config.train.batch = batch;
    return plan_trial(config, {{8, memory, "MemAvailable"}, "cpu", 0}, sets);
  };
  CHECK(on_cpu(32, 64 * GiB));
  const Result<RunPlan> ram = on_cpu(1024, 64 * GiB);
  REQUIRE_FALSE(ram);
  CHECK(ram.error().subject == "RAM");

  const auto on_gpu = [&](std::int64_t batch, std::size_t vram) {
    config.train.batch = batch;
    return plan_trial(config, {{8, 64 * GiB, "MemAvailable"}, "cuda", vram}, sets);
  };
  CHECK(on_gpu(32, 16 * GiB));
  CHECK(on_gpu(512, 0));  // not known
  const Result<RunPlan> vram = on_gpu(512, 16 * GiB);
  REQUIRE_FALSE(vram);
  CHECK(vram.error().subject == "VRAM");
}
