#include "run/config/step_options.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <set>

#include "run/config/keys.hpp"

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

// The options of model/ have no defaults of their own to fall back to.
TEST_CASE("every key of [model], [optim] and [train] reaches the step, but for those that are not its own") {
  const std::set<std::string_view> others{"model.device",  "model.weights",    "optim.kind",
                                          "optim.lr",      "optim.base_batch", "train.epochs",
                                          "train.threads", "train.max_steps"};
  const auto told = [](const Config& c) {
    const StepOptions s = step_options(c, 10, "cpu", 1);
    std::string text = s.arch + " " + s.precision + " " + s.compile;
    for (const double value :
         {double(s.channels_last), double(s.recompute), double(s.zero_init), s.label_smoothing, s.momentum,
          s.weight_decay, double(s.decay_all), double(s.nesterov), s.clip, s.ema, double(s.accumulate),
          double(s.seed), double(s.batch), double(s.sync_bn)})
      text += " " + std::to_string(value);
    return text;
  };
  for (const Key& key : config_keys()) {
    if (key.section() != "model" && key.section() != "optim" && key.section() != "train") continue;
    Config other;
    const ValueRef value = key.value(other);
    if (auto* v = std::get_if<bool*>(&value)) **v = !**v;
    if (auto* v = std::get_if<std::int64_t*>(&value)) **v += 1;
    if (auto* v = std::get_if<double*>(&value)) **v += 0.5;
    if (auto* v = std::get_if<std::string*>(&value))
      **v = **v == key.choices.back() ? key.choices.front() : key.choices.back();
    CAPTURE(key.name);
    CHECK((told(other) != told(Config())) == !others.contains(key.name));
  }
}
