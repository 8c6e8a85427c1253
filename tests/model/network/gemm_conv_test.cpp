#include "model/network/gemm_conv.hpp"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

at::Tensor leaf(at::IntArrayRef shape) {
  return at::randn(shape).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
}

}  // namespace

TEST_CASE("gemm convolution: the same as torch's, forward and backward") {
  torch::manual_seed(1);
  const at::Tensor images = leaf({3, 5, 4, 2}), weight = leaf({7, 5, 3, 3});
  const at::Tensor ours = gemm_conv(images, weight);
  const at::Tensor theirs = at::conv2d(images, weight, {}, 1, 1);
  CHECK(ours.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(at::allclose(ours, theirs, 1e-4, 1e-5));
  const at::Tensor above = at::randn_like(ours);
  ours.backward(above);
  const at::Tensor images_ours = images.grad().clone(), weight_ours = weight.grad().clone();
  images.mutable_grad().reset();
  weight.mutable_grad().reset();
  theirs.backward(above);
  CHECK(at::allclose(images_ours, images.grad(), 1e-4, 1e-5));
  CHECK(at::allclose(weight_ours, weight.grad(), 1e-4, 1e-5));
}

TEST_CASE("gemm convolution: only for the shapes that gain") {
  const auto chosen = [](const at::Tensor& images, const at::Tensor& weight, std::int64_t stride) {
    return gemm_is_faster({weight.size(1), weight.size(0), weight.size(2), stride}, images, weight);
  };
  const at::Tensor weight = leaf({512, 512, 3, 3});
  CHECK(chosen(leaf({2, 512, 2, 2}), weight, 1));
  CHECK_FALSE(chosen(leaf({2, 512, 2, 2}), weight, 2));
  CHECK_FALSE(chosen(leaf({2, 512, 14, 14}), weight, 1));
  CHECK_FALSE(chosen(leaf({2, 512, 2, 2}).contiguous(), weight, 1));
  CHECK_FALSE(chosen(leaf({2, 512, 2, 2}), leaf({512, 512, 1, 1}), 1));
  CHECK_FALSE(chosen(leaf({2, 256, 2, 2}), leaf({256, 256, 3, 3}), 1));
}
