#include "model/device/cpu_memory.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "model/train/train_step.hpp"

using namespace sluice;

namespace {

constexpr int size = 32;

// One call of train or eval with `count` images.
struct Feed {
  explicit Feed(int count) : pixels(static_cast<std::size_t>(count) * size * size * 3, 100), labels(count) {}
  DeviceBatch give() {
    return {pixels.data(), labels.data(), static_cast<int>(labels.size()), image_layout(size), [] {}, [] {}};
  }
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
};

void round(Step& step) {
  Feed train(8), eval(5);
  REQUIRE(step.train(train.give(), 0.001));
  REQUIRE(step.eval(eval.give()));
  REQUIRE(step.read_back());
}

}  // namespace

TEST_CASE("cpu memory: training and validation in turns take no more than the first time") {
  const std::size_t before = cpu_memory().in_use;
  StepOptions options;
  options.arch = "resnet18";
  options.classes = 2;
  options.batch = 8;
  options.task = image_classification(size);
  options.momentum = 0.9;
  options.channels_last = true;
  options.threads = 1;
  KeptMemory::Usage first;
  {
    auto step = Step::create(options);
    REQUIRE(step);
    // Weights and momenta at least: 11.2 million parameters, four bytes each.
    CHECK(cpu_memory().in_use - before > 2 * 4 * 11'000'000u);
    for (int i = 0; i < 2; ++i) round(*step);
    first = cpu_memory();
    for (int i = 0; i < 2; ++i) round(*step);
    const KeptMemory::Usage then = cpu_memory();
    CHECK(then.in_use == first.in_use);
    CHECK(then.kept == first.kept);
    CHECK(then.peak == first.peak);
    CHECK(then.returned == first.returned);  // so nothing was taken from the kernel in exchange either
  }
  const KeptMemory::Usage after = cpu_memory();
  CHECK(after.in_use == before);
  CHECK(after.in_use + after.kept <= after.peak + after.peak / 8);
}
