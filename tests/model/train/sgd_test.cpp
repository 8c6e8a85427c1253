#include "model/train/sgd.hpp"

#include <doctest/doctest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>

using namespace sluice;

namespace {

constexpr SgdOptions usual{.momentum = 0.9, .weight_decay = 1e-4, .nesterov = false, .decay_all = true};

std::vector<at::Tensor> parameters() {
  torch::manual_seed(9);
  std::vector<at::Tensor> made{at::randn({8, 3, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast),
                               at::randn({16, 4, 1, 1}).contiguous(at::MemoryFormat::ChannelsLast),
                               at::randn({6, 5}), at::randn({7})};
  for (at::Tensor& parameter : made) parameter.requires_grad_();
  return made;
}

// A smooth loss, so that rounding does not grow from step to step; its gradient comes in another layout than
// the parameter's.
at::Tensor loss(const std::vector<at::Tensor>& parameters, int step) {
  at::Tensor sum = at::zeros({});
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor slope =
        at::arange(parameter.numel(), at::kFloat).view(parameter.sizes()).sin() * (step + 1);
    sum = sum + (parameter.contiguous() * slope + 0.05 * parameter.contiguous().square()).sum();
  }
  return sum;
}

}  // namespace

TEST_CASE("sgd: takes the same steps as torch::optim::SGD, the first included") {
  for (const SgdOptions options : {SgdOptions{0.9, 1e-4, false, true}, SgdOptions{0.9, 1e-2, true, true},
                                   SgdOptions{0.0, 1e-3, false, true}}) {
    const auto ours = parameters(), theirs = parameters();
    Sgd sgd(ours, options);
    torch::optim::SGD reference(theirs, torch::optim::SGDOptions(0.1)
                                            .momentum(options.momentum)
                                            .weight_decay(options.weight_decay)
                                            .nesterov(options.nesterov));
    for (int step = 0; step < 6; ++step) {
      const double rate = 0.1 / (step + 1);
      sgd.zero_gradients();
      loss(ours, step).backward();
      sgd.step(rate);
      reference.zero_grad();
      loss(theirs, step).backward();
      static_cast<torch::optim::SGDOptions&>(reference.param_groups()[0].options()).lr(rate);
      reference.step();
      for (std::size_t i = 0; i < ours.size(); ++i) CHECK(at::allclose(ours[i], theirs[i], 1e-5, 1e-6));
    }
    CHECK(sgd.momenta().size() == (options.momentum == 0 ? 0 : ours.size()));
  }
}

TEST_CASE("sgd: gradients keep their memory and are zeroed") {
  const auto values = parameters();
  Sgd sgd(values, usual);
  const void* before = values[0].grad().data_ptr();
  loss(values, 0).backward();
  CHECK(values[0].grad().data_ptr() == before);
  CHECK(values[0].grad().strides() == values[0].strides());
  CHECK(sgd.gradients()[0].abs().sum().item<double>() > 0);
  sgd.zero_gradients();
  for (const at::Tensor& value : values) CHECK(value.grad().abs().sum().item<double>() == 0);
}

TEST_CASE("sgd: a step with found_inf changes nothing") {
  const auto values = parameters(), before = parameters();
  Sgd sgd(values, usual);
  loss(values, 0).backward();
  sgd.step(0.1, at::ones({}));
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(values[i].equal(before[i]));
    CHECK(sgd.momenta()[i].abs().sum().item<double>() == 0);
  }
  sgd.step(0.1, at::zeros({}));
  CHECK_FALSE(values[0].equal(before[0]));
}

TEST_CASE("sgd: norms and biases can be left out of the decay") {
  const auto all = parameters(), some = parameters();
  Sgd decayed(all, {0.9, 0.1, false, true}), sparing(some, {0.9, 0.1, false, false});
  decayed.step(0.5);
  sparing.step(0.5);
  const auto before = parameters();
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(at::allclose(all[i], 0.95 * before[i]));
    if (before[i].dim() == 1)
      CHECK(some[i].equal(before[i]));
    else
      CHECK(some[i].equal(all[i]));
    CHECK(sparing.momenta()[i].sizes() == before[i].sizes());  // in the order of the parameters
  }
}

TEST_CASE("sgd: clips as torch's clip_grad_norm_ does") {
  for (const double norm : {0.5, 1e6}) {
    const auto ours = parameters(), theirs = parameters();
    Sgd sgd(ours, usual);
    loss(ours, 1).backward();
    loss(theirs, 1).backward();
    sgd.clip_gradients(norm);
    torch::nn::utils::clip_grad_norm_(theirs, norm);
    for (std::size_t i = 0; i < ours.size(); ++i)
      CHECK(at::allclose(sgd.gradients()[i], theirs[i].grad(), 1e-5, 1e-8));
  }
}

TEST_CASE("sgd: a rate that the device holds makes the same step") {
  at::Tensor a = at::ones({5}).requires_grad_(true), b = at::ones({5}).requires_grad_(true);
  Sgd host({a}, usual), device({b}, usual);
  at::Tensor lr = at::zeros({}, at::kFloat);
  for (const double rate : {0.5, 0.125}) {
    const at::Tensor slope = at::arange(5, at::kFloat);
    host.gradients()[0].copy_(slope);
    device.gradients()[0].copy_(slope);
    host.step(rate);
    device.step(lr.fill_(rate));
    CHECK(a.equal(b));
  }
}
