#include "model/train/schedule.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

using namespace sluice;

namespace {
ScheduleOptions usual() {
  return {.kind = "cosine",
          .lr = 0.1,
          .total_batch = 256,
          .base_batch = 256,
          .epochs = 90,
          .warmup_epochs = 5,
          .warmup_start = 0.01};
}

ScheduleOptions long_run() {
  ScheduleOptions options = usual();
  options.lr = 0.5;
  options.epochs = 600;
  return options;
}
}  // namespace

TEST_CASE("schedule by epochs: warm-up table, cosine, zero at the last epoch") {
  const ScheduleOptions options = long_run();
  const double warm[] = {0.005, 0.12875, 0.2525, 0.37625, 0.5, 0.5};
  for (int epoch = 0; epoch < 6; ++epoch)
    CHECK(learning_rate(options, epoch, 0, 100) == doctest::Approx(warm[epoch]).epsilon(1e-12));
  for (int epoch = 5; epoch < 600; ++epoch) {
    const double expected = 0.25 * (1 + std::cos(std::numbers::pi * (epoch - 5) / 594));
    CHECK(std::abs(learning_rate(options, epoch, 0, 100) - expected) < 1e-12);
  }
  CHECK(learning_rate(options, 599, 0, 100) == 0.0);
  CHECK(learning_rate(options, 42, 99, 100) == learning_rate(options, 42, 0, 100));
}

TEST_CASE("schedule by steps: start, peak, zero at the last step, never up after the peak") {
  ScheduleOptions options = long_run();
  options.epochs = 10;
  options.interval = "step";
  CHECK(learning_rate(options, 0, 0, 20) == doctest::Approx(0.005));
  CHECK(learning_rate(options, 4, 19, 20) == doctest::Approx(0.5));
  CHECK(learning_rate(options, 5, 0, 20) == doctest::Approx(0.5));
  CHECK(learning_rate(options, 9, 19, 20) == 0.0);
  double before = 0.0;
  for (int step = 0; step < 200; ++step) {
    const double rate = learning_rate(options, step / 20, step % 20, 20);
    if (step < 100) CHECK(rate > before);
    if (step > 100) CHECK(rate < before);
    before = rate;
  }
}

TEST_CASE("schedule: the total batch scales the peak, constant stays there") {
  ScheduleOptions options = usual();
  options.kind = "constant";
  options.total_batch = 1024;
  CHECK(peak_rate(options) == doctest::Approx(0.4));
  CHECK(learning_rate(options, 0, 0, 10) == doctest::Approx(0.004));
  CHECK(learning_rate(options, 5, 0, 10) == doctest::Approx(0.4));
  CHECK(learning_rate(options, 89, 9, 10) == doctest::Approx(0.4));
}

TEST_CASE("schedule: shortest runs are finite") {
  for (const char* interval : {"epoch", "step"})
    for (int epochs : {1, 2, 5, 6})
      for (int warmup : {0, 1, 5})
        for (int steps : {1, 3}) {
          ScheduleOptions options = usual();
          options.interval = interval;
          options.epochs = epochs;
          options.warmup_epochs = warmup;
          for (int epoch = 0; epoch < epochs; ++epoch)
            for (int step = 0; step < steps; ++step) {
              const double rate = learning_rate(options, epoch, step, steps);
              CHECK(rate >= 0.0);
              CHECK(rate <= 0.1 + 1e-12);
            }
        }
  ScheduleOptions one = usual();
  one.epochs = 1;
  one.warmup_epochs = 0;
  CHECK(learning_rate(one, 0, 0, 10) == doctest::Approx(0.1));
}
