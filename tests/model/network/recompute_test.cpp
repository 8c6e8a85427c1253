#include "model/network/recompute.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "model/device/cpu_memory.hpp"
#include "model/network/resnet.hpp"

#include "tests/support/two_colours.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

struct Trained {
  std::vector<double> losses;
  Snapshot snapshot;
};

Trained train(StepOptions options, bool recompute) {
  options.recompute = recompute;
  auto step = Step::create(options);
  REQUIRE(step);
  Trained trained;
  for (int i = 0; i < 3; ++i) trained.losses.push_back(train_once(*step, i));
  REQUIRE(step->snapshot(trained.snapshot));
  return trained;
}

// What a step takes at most, above what is held between steps. Large images: activations, not weights,
// decide.
std::size_t peak_of_a_step(bool recompute, const std::string& precision) {
  constexpr int side = 128;
  StepOptions options = tiny();
  options.task = image_classification(side);
  options.recompute = recompute;
  options.precision = precision;
  auto step = Step::create(options);
  REQUIRE(step);
  const std::vector<std::uint8_t> pixels(std::size_t{batch} * side * side * 3, 90);
  const std::vector<std::int32_t> labels(batch);
  mark_cpu_memory();
  const std::size_t before = cpu_memory().in_use;
  REQUIRE(step->train({pixels.data(), labels.data(), batch, image_layout(side), [] {}, [] {}}, 0.001));
  return cpu_memory().recent - before;
}

// Losses, weights, momenta and the norms' statistics after three steps.
void check_same(const Trained& plain, const Trained& recomputed) {
  for (std::size_t i = 0; i < plain.losses.size(); ++i)
    CHECK(same_bits(plain.losses[i], recomputed.losses[i]));
  CHECK((plain.snapshot.data == recomputed.snapshot.data));
}

}  // namespace

TEST_CASE("recompute: the same training bit for bit") {
  check_same(train(tiny(), false), train(tiny(), true));
}

TEST_CASE("recompute: a step takes less memory at its peak") {
  const std::size_t plain = peak_of_a_step(false, "fp32"), less = peak_of_a_step(true, "fp32");
  INFO(plain, " bytes, recomputed ", less);
  CHECK(less < plain * 7 / 10);
}

TEST_SUITE_BEGIN("long");  // bf16 is slow on processors that do not have it

TEST_CASE("recompute: a step of bf16 takes less memory too") {
  const std::size_t plain = peak_of_a_step(false, "bf16"), less = peak_of_a_step(true, "bf16");
  INFO(plain, " bytes, recomputed ", less);
  CHECK(less < plain * 7 / 10);
}

TEST_CASE("recompute: the second run has the autocast settings of the first, and torch's norms count once") {
  StepOptions options = tiny();
  options.precision = "bf16";
  check_same(train(options, false), train(options, true));
}

TEST_CASE("recompute: the other layout comes out the same too") {
  StepOptions options = tiny();
  options.channels_last = false;
  check_same(train(options, false), train(options, true));
}

TEST_SUITE_END();

TEST_CASE("recompute: a part runs once without gradients, twice with, and knows which time it is") {
  std::vector<bool> runs;
  const at::Tensor weight = at::full({3}, 2.0f).requires_grad_(true);
  const auto part = [&](const at::Tensor& x) {
    runs.push_back(recomputing());
    return (x * weight).square();
  };
  {
    const at::NoGradGuard no_grad;
    (void)recompute(part, at::ones({3}), {weight});
    CHECK(runs == std::vector{false});
  }
  for (const bool through : {false, true}) {
    runs.clear();
    weight.mutable_grad() = at::Tensor();
    at::Tensor input = at::full({3}, 3.0f);
    input.requires_grad_(through);
    recompute(part, input, {weight}).sum().backward();
    CHECK(runs == std::vector{false, true});
    CHECK_FALSE(recomputing());
    CHECK(weight.grad().eq(2 * 9 * 2).all().item<bool>());
    CHECK(input.grad().defined() == through);
    if (through) CHECK(input.grad().eq(2 * 3 * 4).all().item<bool>());
  }
}

TEST_CASE("recompute: a part that fails in its second run leaves nothing switched on") {
  at::Tensor weight = at::ones({2}).requires_grad_(true);
  const auto part = [&](const at::Tensor& x) {
    if (recomputing()) throw std::runtime_error("no second time");
    return x * weight;
  };
  const at::Tensor out = recompute(part, at::ones({2}), {weight});
  CHECK_THROWS(out.sum().backward());
  CHECK_FALSE(recomputing());
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}
