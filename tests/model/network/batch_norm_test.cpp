#include "model/network/batch_norm.hpp"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

struct Passed {
  at::Tensor out, images, weight, bias, mean, var;
};

// One training step's worth through a norm with values of its own, by `through`.
Passed pass(const at::Tensor& images, at::Tensor (*through)(torch::nn::BatchNorm2d&, const at::Tensor&)) {
  torch::manual_seed(4);
  torch::nn::BatchNorm2d norm(images.size(1));
  {
    const at::NoGradGuard no_grad;
    norm->weight.uniform_(0.5, 2);
    norm->bias.uniform_(-1, 1);
  }
  norm->to(images.scalar_type());
  at::Tensor x = images.clone().requires_grad_();
  at::Tensor out = through(norm, x);
  const at::Tensor slope =
      at::randn(out.sizes()).contiguous(at::MemoryFormat::ChannelsLast).to(out.scalar_type());
  out.backward(slope);
  CHECK(norm->num_batches_tracked.item<int>() == 1);
  return {out, x.grad(), norm->weight.grad(), norm->bias.grad(), norm->running_mean, norm->running_var};
}

void check_close(const at::Tensor& ours, const at::Tensor& theirs) {
  CHECK((ours - theirs).norm().item<double>() <= 1e-6 * theirs.norm().item<double>());
}

}  // namespace

TEST_CASE("batch norm: forward, gradients and running statistics are torch's") {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{4, 64, 9, 7}, {2, 3, 3, 2}, {8, 5, 16, 16}, {3, 130, 5, 5}}) {
    torch::manual_seed(3);
    const at::Tensor images = (3 * at::randn(shape) + 5).contiguous(at::MemoryFormat::ChannelsLast);
    const Passed ours = pass(images, [](auto& norm, const auto& x) { return normalise(norm, x); });
    const Passed theirs = pass(images, [](auto& norm, const auto& x) { return norm->forward(x); });
    CHECK(ours.out.equal(theirs.out));
    CHECK(ours.mean.equal(theirs.mean));
    CHECK(ours.var.equal(theirs.var));
    check_close(ours.images, theirs.images);
    check_close(ours.weight, theirs.weight);
    check_close(ours.bias, theirs.bias);
    CHECK(ours.images.strides() == theirs.images.strides());
  }
}

TEST_CASE("batch norm: with a sum and a relu behind it, all is as in double precision, one by one") {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{4, 64, 9, 7}, {2, 3, 3, 2}, {8, 5, 16, 16}, {3, 130, 5, 5}, {1, 7, 3, 2}}) {
    torch::manual_seed(3);
    const at::Tensor images = (3 * at::randn(shape) + 5).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor added = at::randn(shape).contiguous(at::MemoryFormat::ChannelsLast);
    static at::Tensor other;
    const auto run = [&](at::ScalarType type, auto through) {
      other = added.detach().clone().to(type).detach().requires_grad_();
      return std::pair(pass(images.to(type), through), other);
    };
    const auto compare = [&](auto ours, auto theirs) {
      const auto [a, other_a] = run(at::kFloat, ours);
      const auto [b, other_b] = run(at::kDouble, theirs);
      check_close(a.out, b.out);
      check_close(a.images, b.images);
      check_close(a.weight, b.weight);
      check_close(a.bias, b.bias);
      check_close(a.mean, b.mean);
      check_close(a.var, b.var);
      CHECK(a.images.strides() == b.images.strides());
      REQUIRE(other_a.grad().defined() == other_b.grad().defined());
      if (other_a.grad().defined()) CHECK(other_a.grad().equal(other_b.grad().to(at::kFloat)));
    };
    compare([](auto& norm, const auto& x) { return normalise_relu(norm, x); },
            [](auto& norm, const auto& x) { return norm->forward(x).relu_(); });
    compare([](auto& norm, const auto& x) { return normalise_add_relu(norm, x, other); },
            [](auto& norm, const auto& x) { return (norm->forward(x) += other).relu_(); });
  }
}

TEST_CASE("batch norm: what is not a number goes through the relu") {
  torch::nn::BatchNorm2d norm(4);
  at::Tensor images = at::randn({2, 4, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  images[0][1][2][2] = NAN;
  images.requires_grad_();
  CHECK(normalise_relu(norm, images).isnan().any().item<bool>());
  CHECK(normalise_add_relu(norm, images, images).isnan().any().item<bool>());
}

TEST_CASE("batch norm: a rectifier in place behind it does not disturb the gradients") {
  const at::Tensor images = at::randn({4, 16, 6, 6}).contiguous(at::MemoryFormat::ChannelsLast);
  const Passed ours = pass(images, [](auto& norm, const auto& x) { return normalise(norm, x).relu_(); });
  const Passed theirs = pass(images, [](auto& norm, const auto& x) { return norm->forward(x).relu_(); });
  check_close(ours.images, theirs.images);
  check_close(ours.weight, theirs.weight);
}

TEST_CASE("batch norm: evaluation and other layouts are left to torch") {
  torch::nn::BatchNorm2d norm(4);
  const at::Tensor images = at::randn({2, 4, 3, 3});
  CHECK(normalise(norm, images).defined());
  norm->eval();
  const at::Tensor last = images.contiguous(at::MemoryFormat::ChannelsLast);
  CHECK(normalise(norm, last).equal(norm->forward(last)));
  CHECK(norm->num_batches_tracked.item<int>() == 1);
}
