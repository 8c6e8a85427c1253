#include "run/config/same.hpp"

#include <doctest/doctest.h>

#include "run/config/config.hpp"

using namespace sluice;

TEST_CASE("ranks may differ in what concerns their host alone") {
  Config a, b;
  b.data.train = "/scratch/train";
  b.budget.ram = Size{1u << 30};
  b.pipeline.decode_threads = 3;
  b.log.dir = "elsewhere";
  b.train.threads = 5;
  CHECK(same_training(to_toml(b), to_toml(a), "rank 1"));
}

TEST_CASE("ranks that would train differently are refused, with the key") {
  const Config a;
  const auto refused = [&](const Config& b) {
    const Status same = same_training(to_toml(b), to_toml(a), "rank 3");
    REQUIRE_FALSE(same);
    return same.error().text();
  };
  Config b;
  b.train.epochs = 7;
  CHECK(refused(b) ==
        "ranks: rank 3: train.epochs is 7, and 90 on rank 0; give all ranks the same configuration");
  b = a;
  b.data.subset_seed = 7;
  CHECK(refused(b).find("data.subset_seed is 7") != std::string::npos);
  b = a;
  b.log.every = 3;
  CHECK(refused(b).find("log.every is 3") != std::string::npos);
  b = a;
  b.checkpoint.every_steps = 5;
  CHECK(refused(b).find("checkpoint.every_steps is 5") != std::string::npos);
}
