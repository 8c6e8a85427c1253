// A convolution as one matrix product, for the shapes where oneDNN's own are slow on the CPU: many channels
// over few pixels, as in the last stage of a ResNet. The same sums in another order, with a third of the
// rounding error (against double precision: 2.5e-7 of the norm, oneDNN 8.1e-7; 512 channels, 2x2 pixels).
#pragma once

#include "model/network/gemm_choice.hpp"
#include "pch/torch.hpp"

namespace sluice {

// Whether these images should go through this convolution as a product: see model/network/gemm_choice.hpp.
[[nodiscard]] bool gemm_is_faster(const ConvShape& conv, const at::Tensor& images, const at::Tensor& weight);

// 3x3, stride 1, one pixel of padding, no bias. images [n, in, h, w] and weight [out, in, 3, 3], both
// channels last; so is what comes out. Differentiable.
[[nodiscard]] at::Tensor gemm_conv(const at::Tensor& images, const at::Tensor& weight);

}  // namespace sluice
