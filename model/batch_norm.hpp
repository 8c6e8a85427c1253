// Batch norm in training, with a backward pass of its own for channels-last floats on the CPU: torch's takes
// five times as long as its forward, this one about twice. Elsewhere it is torch's.
#pragma once

#include "model/pch/torch.hpp"

namespace sluice {

// What norm->forward(images) computes, running statistics included.
[[nodiscard]] at::Tensor normalise(torch::nn::BatchNorm2d& norm, const at::Tensor& images);

}  // namespace sluice
