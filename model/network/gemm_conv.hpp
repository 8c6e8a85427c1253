// A convolution as one matrix product, for the shapes where oneDNN's own are slow on the CPU: many channels
// over few pixels, as in the last stage of a ResNet. The same sums in another order, with a third of the
// rounding error (against double precision: 2.5e-7 of the norm, oneDNN 8.1e-7; 512 channels, 2x2 pixels).
#pragma once

#include "pch/torch.hpp"

namespace sluice {

// True for 3x3 convolutions of channels-last float images on the CPU where the product takes less time,
// forward and backward together.
[[nodiscard]] bool gemm_is_faster(const at::Tensor& images, const at::Tensor& weight, std::int64_t stride);

// 3x3, stride 1, one pixel of padding, no bias. images [n, in, h, w] and weight [out, in, 3, 3], both
// channels last; so is what comes out. Differentiable.
[[nodiscard]] at::Tensor gemm_conv(const at::Tensor& images, const at::Tensor& weight);

}  // namespace sluice
