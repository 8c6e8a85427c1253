// Stochastic gradient descent with momentum, as torch.optim.SGD computes it, in one fused call for all
// parameters. Gradients and momentum are allocated once, in the layout of their parameter.
#pragma once

#include <optional>

#include "model/pch/torch.hpp"

namespace sluice {

struct SgdOptions {
  double momentum = 0.9;
  double weight_decay = 1e-4;
  bool nesterov = false;
};

class Sgd {
 public:
  // The parameters must have their final device and memory format.
  Sgd(std::vector<at::Tensor> parameters, SgdOptions options);

  void zero_gradients();
  // With `found_inf` (a float scalar on the device), the step is left out where that is 1.
  void step(double lr, const std::optional<at::Tensor>& found_inf = {});

  [[nodiscard]] const std::vector<at::Tensor>& gradients() const { return gradients_; }
  // In the order of the parameters; empty without momentum. All zero before the first step, which makes the
  // first step's momentum the gradient itself.
  [[nodiscard]] const std::vector<at::Tensor>& momenta() const { return momenta_; }

 private:
  SgdOptions options_;
  std::vector<at::Tensor> parameters_, gradients_, momenta_;
};

}  // namespace sluice
