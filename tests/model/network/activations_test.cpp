// The walk over the network against what a step on the CPU really takes.
#include "model/network/activations.hpp"
#include "model/network/resnet.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "model/device/cpu_memory.hpp"
#include "model/network/shape.hpp"
#include "model/train/train_step.hpp"

using namespace sluice;

namespace {

// The most that a step, or a batch of validation, holds above what is held between steps.
std::size_t real_peak(const StepShape& shape, bool validation = false) {
  StepOptions options;
  options.arch = shape.arch;
  options.classes = static_cast<int>(shape.classes);
  options.batch = static_cast<int>(shape.batch);
  options.task = image_classification(shape.image_size);
  options.precision = shape.precision;
  options.recompute = shape.recompute;
  options.channels_last = shape.channels_last;
  options.momentum = 0.9;  // its memory is counted
  options.threads = 1;
  auto step = Step::create(options);
  REQUIRE(step);
  const auto pixels_of = [](const StepShape& s) {
    return static_cast<std::size_t>(s.batch * s.image_size * s.image_size * 3);
  };
  const std::vector<std::uint8_t> pixels(pixels_of(shape), 90);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(shape.batch));
  const auto once = [&] {
    DeviceBatch batch{pixels.data(), labels.data(), options.batch, options.task.sample, [] {}, [] {}};
    REQUIRE((validation ? step->eval(std::move(batch)) : step->train(std::move(batch), 0.001)));
  };
  once();
  mark_cpu_memory();
  const std::size_t before = cpu_memory().in_use;
  once();
  return cpu_memory().recent - before;
}

void check_near(const StepShape& shape, double off = 0.1) {
  const auto real = static_cast<double>(real_peak(shape));
  const auto planned = static_cast<double>(step_memory(shape).peak);
  INFO(shape.arch, " at ", shape.image_size, " px, batch ", shape.batch, ", ", shape.precision,
       std::string(shape.recompute ? ", recomputed" : ""), ": ", real, " bytes, planned ", planned,
       ", ratio ", planned / real);
  CHECK(planned > (1 - off) * real);
  CHECK(planned < (1 + off) * real);
}

StepShape on_cpu(const std::string& arch, std::int64_t size, std::int64_t batch, bool recompute) {
  StepShape shape;
  shape.arch = arch;
  shape.classes = 10;
  shape.image_size = size;
  shape.batch = batch;
  shape.cpu = true;
  shape.recompute = recompute;
  return shape;
}

}  // namespace

TEST_CASE("activations: within a tenth of what a step on the CPU takes, resnet18") {
  for (const bool recompute : {false, true}) {
    check_near(on_cpu("resnet18", 64, 32, recompute));
    check_near(on_cpu("resnet18", 96, 16, recompute));
  }
}

TEST_CASE("activations: within a tenth of what a step on the CPU takes, resnet50" *
          doctest::test_suite("long")) {
  for (const bool recompute : {false, true}) {
    check_near(on_cpu("resnet50", 64, 16, recompute));
    check_near(on_cpu("resnet50", 96, 8, recompute));
  }
}

TEST_CASE("activations: within a fifth of what validation on the CPU takes") {
  for (const char* arch : {"resnet18", "resnet50"}) {
    const StepShape shape = on_cpu(arch, 96, 16, false);
    const auto real = static_cast<double>(real_peak(shape, true));
    const auto planned = static_cast<double>(step_memory(shape).validation);
    INFO(shape.arch, ": ", real, " bytes, planned ", planned, ", ratio ", planned / real);
    CHECK(planned > 0.8 * real);
    CHECK(planned < 1.2 * real);
  }
}

TEST_CASE("activations: tf32 is float on the CPU, for the plan as for the step") {
  StepShape shape = on_cpu("resnet18", 32, 32, false);
  const std::size_t single = step_memory(shape).peak;
  shape.precision = "tf32";
  CHECK(step_memory(shape).peak == single);
  check_near(shape);
}

TEST_CASE("activations: parameters and buffers are those of the network") {
  for (const char* arch : {"resnet18", "resnet34", "resnet50", "resnet101"})
    for (const int classes : {2, 1000}) {
      auto network = make_resnet(arch, classes, 1);
      REQUIRE(network);
      std::size_t parameters = 0, buffers = 0;
      for (const at::Tensor& p : (*network)->parameters()) parameters += p.nbytes();
      for (const at::Tensor& b : (*network)->buffers()) buffers += b.nbytes();
      const NetworkBytes bytes = network_bytes(arch, classes, "fp32");
      CHECK(bytes.parameters == parameters);
      CHECK(bytes.buffers == buffers);
    }
  CHECK(network_shape(*resnet_kind("resnet50")).parameters(1000) == 25'557'032);
  CHECK(resnet_kind("resnet19") == nullptr);
  CHECK(network_bytes("resnet19", 10, "fp32").parameters == 0);
}

TEST_CASE("activations: in proportion to the batch, half in half precision, less when recomputed") {
  StepShape shape;
  const std::size_t at256 = step_memory(shape).peak;
  shape.batch = 512;
  CHECK(step_memory(shape).peak == doctest::Approx(2.0 * static_cast<double>(at256)).epsilon(0.01));
  shape.batch = 256;
  shape.precision = "fp16";
  const std::size_t half = step_memory(shape).peak;
  CHECK(half == doctest::Approx(0.5 * static_cast<double>(at256)).epsilon(0.03));
  shape.recompute = true;
  CHECK(step_memory(shape).peak < half / 2);
  shape.arch = "resnet19";
  CHECK(step_memory(shape).peak == 0);
}

TEST_SUITE_BEGIN("long");  // bf16 is slow on processors that do not have it

TEST_CASE("activations: within a fifth in other precisions and layouts") {
  for (const bool recompute : {false, true}) {
    StepShape shape = on_cpu("resnet18", 96, 16, recompute);
    shape.precision = "bf16";
    check_near(shape, 0.2);
    shape.precision = "fp64";
    check_near(shape, 0.2);
    shape.precision = "fp32";
    shape.channels_last = false;
    check_near(shape, 0.2);
  }
}

TEST_SUITE_END();
