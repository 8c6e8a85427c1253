#include "run/config/step_options.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

using namespace sluice;

namespace {

// Tests run in the source folder.
Config preset(const std::string& name) {
  Loaded loaded = load_config("configs/" + name + ".toml");
  for (const Error& error : loaded.errors) FAIL(error.text());
  return loaded.config;
}

struct Size3 {
  std::int64_t batch, decode_threads, prefetch;
  bool operator==(const Size3&) const = default;
};

Size3 sizes(const Config& c) {
  return {c.train.batch, c.pipeline.decode_threads.value_or(0), c.pipeline.prefetch.value_or(0)};
}

}  // namespace

TEST_CASE("the long recipe has the learning rates it is known for") {
  const Config c = preset("resnet_strikes_back");
  const ScheduleOptions s = schedule_options(c);
  const double first[] = {0.005, 0.12875, 0.2525, 0.37625, 0.5, 0.5};
  for (std::int64_t epoch = 0; epoch < 6; ++epoch)
    CHECK(learning_rate(s, epoch, 17, 5004) == doctest::Approx(first[epoch]).epsilon(1e-12));
  for (std::int64_t epoch = 6; epoch < 599; ++epoch)
    CHECK(learning_rate(s, epoch, 0, 5004) ==
          doctest::Approx(0.25 * (1 + std::cos(std::numbers::pi * static_cast<double>(epoch - 5) / 594)))
              .epsilon(1e-12));
  CHECK(learning_rate(s, 599, 0, 5004) == 0.0);
  const StepOptions o = step_options(c, 1000, "cuda", 1);
  CHECK(o.arch == "resnet50");
  CHECK(o.momentum == 0.9);
  CHECK(o.weight_decay == 2e-5);
  CHECK(o.label_smoothing == 0.1);
  CHECK(o.precision == "fp16");
  const MixOptions m = mix_options(c);
  CHECK(m.mixup == 0.2);
  CHECK(m.cutmix == 1.0);
}

TEST_CASE("the presets are the sizes they are known by") {
  CHECK(sizes(preset("single_gpu_full")) == Size3{256, 12, 3});
  CHECK(sizes(preset("conservative")) == Size3{192, 8, 2});
  CHECK(sizes(preset("aggressive")) == Size3{320, 16, 4});
  const Config large = preset("aggressive_384");
  CHECK(sizes(large) == Size3{384, 32, 8});
  CHECK(peak_rate(schedule_options(large)) == 0.75);
  const Config part = preset("optimized_test");
  CHECK(sizes(part) == Size3{256, 16, 4});
  CHECK(part.data.classes == 100);
  CHECK(part.data.subset_seed == 42);
}

TEST_CASE("the presets differ in mixing, length and recording as their heads say") {
  for (const char* name :
       {"single_gpu_full", "aggressive", "aggressive_384", "conservative", "optimized_test"}) {
    CAPTURE(name);
    const Config c = preset(name);
    CHECK(mix_options(c).mixup == 0);
    CHECK(mix_options(c).cutmix == 0);
    CHECK(c.train.epochs <= 100);
    CHECK(c.optim.lr == 0.5);
    CHECK(c.model.precision == "fp16");
  }
  CHECK(preset("resnet_strikes_back").train.epochs == 600);
  CHECK(preset("single_gpu_full").train.epochs == 100);
  for (const char* name : {"single_gpu_full", "aggressive", "aggressive_384"})
    CHECK(preset(name).model.compile == "graph");
  CHECK(preset("conservative").model.compile == "none");
}

TEST_CASE("accumulated batches count for the learning rate") {
  Config c;
  c.train.batch = 128;
  c.train.accumulate = 4;
  c.optim.lr = 0.5;
  CHECK(peak_rate(schedule_options(c)) == 1.0);
}

TEST_CASE("the batches of all ranks count for the learning rate") {
  Config c;
  c.train.batch = 64;
  c.optim.lr = 0.5;
  CHECK(peak_rate(schedule_options(c, 4)) == 0.5);
  CHECK(peak_rate(schedule_options(c, 8)) == 1.0);
}
