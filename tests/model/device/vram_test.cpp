#include "model/device/vram.hpp"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

constexpr std::size_t MiB = 1024 * 1024, GiB = 1024 * MiB;

// 24 GiB, of which the step of 256 images had 20 when it wanted more.
DeviceUse full() {
  DeviceUse use;
  use.total = 24 * GiB;
  use.free = 512 * MiB;
  use.weights = use.gradients = use.optimiser = 100 * MiB;
  use.input = 200 * MiB;
  use.activations = 20 * GiB;
  use.image_needs = 120 * MiB;
  use.batch = 256;
  return use;
}

bool has(const Error& error, const std::string& part) { return error.text().find(part) != std::string::npos; }

}  // namespace

TEST_CASE("vram: the batch that fits is in proportion to the memory left for activations") {
  CHECK(fitting_batch(full()) == 168);  // 20.5 GiB / 120 MiB = 174
  DeviceUse use = full();
  use.image_needs = 60 * MiB;  // too low an estimate: the step already had 80 MiB an image, and failed
  CHECK(fitting_batch(use) == 248);
  use.image_needs = 3 * GiB;
  CHECK(fitting_batch(use) == 0);
  use = full();
  use.activations = 0;
  use.free = 960 * MiB;
  CHECK(fitting_batch(use) == 8);
  use.batch = 8;
  CHECK(fitting_batch(use) == 0);
  CHECK(fitting_batch({}) == 0);
}

TEST_CASE("vram: the figures are those of the fullest moment, not of the one after") {
  DeviceUse use;
  use.weights = use.gradients = use.optimiser = 100 * MiB;
  use.input = 150 * MiB;
  Device::Memory memory;
  memory.total = 24 * GiB;
  memory.allocated = 50 * MiB;
  memory.ours = 500 * MiB;  // the activations are freed already
  memory.peak = 20 * GiB + 500 * MiB;
  memory.free = 20 * GiB + 512 * MiB;
  add_figures(use, memory);
  CHECK(use.total == 24 * GiB);
  CHECK(use.free == 512 * MiB);
  CHECK(use.input == 200 * MiB);
  CHECK(use.activations == 20 * GiB);
}

TEST_CASE("vram: the failure names every owner, and what to set") {
  const Error error = out_of_memory(full());
  for (const char* part :
       {"24576.0 MiB", "batch of 256", "weights 100", "gradients 100", "optimiser 100", "input 200",
        "activations so far 20480.0 MiB", "libraries and other processes 3084.0 MiB", "free 512",
        "--set train.batch=168", "train.accumulate", "model.recompute=true"})
    CHECK_MESSAGE(has(error, part), part, " in ", error.text());
  CHECK_FALSE(has(error, "averaged"));
  DeviceUse use = full();
  use.average = MiB;
  use.recompute = true;
  CHECK(has(out_of_memory(use), "averaged weights 1.0 MiB"));
  CHECK_FALSE(has(out_of_memory(use), "model.recompute"));
  use.image_needs = 4 * GiB;
  CHECK(has(out_of_memory(use), "not even 8 images fit"));
}
