// Batch norm in training, with a backward pass of its own for channels-last floats on the CPU: torch's takes
// five times as long as its forward, this one about twice. Elsewhere it is torch's.
#pragma once

#include "pch/torch.hpp"

namespace sluice {

// What norm->forward(images) computes, running statistics included.
[[nodiscard]] at::Tensor normalise(torch::nn::BatchNorm2d& norm, const at::Tensor& images);

// The same with a relu behind it, and with a sum between the two. On the CPU each is two passes over memory
// forward and two backward, where three separate operations take up to nine and seven.
[[nodiscard]] at::Tensor normalise_relu(torch::nn::BatchNorm2d& norm, const at::Tensor& images);
[[nodiscard]] at::Tensor normalise_add_relu(torch::nn::BatchNorm2d& norm, const at::Tensor& images,
                                            const at::Tensor& other);

}  // namespace sluice
