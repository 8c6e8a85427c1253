// Parts of a network that keep nothing of their forward pass for the backward pass but their input, and
// compute the rest a second time when it is needed: less memory for about a third more arithmetic. The
// gradients are the same bit for bit.
#pragma once

#include <functional>

#include "pch/torch.hpp"

namespace sluice {

// What part(input) gives, differentiable by input and parameters. `part` depends on nothing else that
// requires a gradient, leaves its input as it is, and lives until the backward pass. Its second run sees the
// autocast settings of the first.
[[nodiscard]] at::Tensor recompute(std::function<at::Tensor(const at::Tensor&)> part, const at::Tensor& input,
                                   const std::vector<at::Tensor>& parameters);

// True in the second run, on its thread: what changes with every batch (running statistics) must not change
// again.
[[nodiscard]] bool recomputing();

}  // namespace sluice
