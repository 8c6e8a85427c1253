// Stochastic gradient descent with momentum, as torch.optim.SGD computes it, in one fused call for all
// parameters of one weight decay. Gradients and momentum are allocated once, in the layout of their
// parameter.
#pragma once

#include <array>
#include <optional>

#include "pch/torch.hpp"

namespace sluice {

struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool decay_all = false;  // parameters of one dimension (norms and biases) decay too
};

class Sgd {
 public:
  // The parameters must have their final device and memory format. A gradient that is there already, in the
  // layout of its parameter, is used.
  Sgd(const std::vector<at::Tensor>& parameters, SgdOptions options);

  void zero_gradients();
  // Scales the gradients down where the norm of all together is larger, as torch's clip_grad_norm_ does.
  void clip_gradients(double norm);
  // With `found_inf` (a float scalar on the device), the step is left out where that is 1.
  void step(double lr, const std::optional<at::Tensor>& found_inf = {});
  // The same with the rate (float, a scalar) read on the device: for a step that is recorded and replayed.
  void step(const at::Tensor& lr, const std::optional<at::Tensor>& found_inf = {});

  [[nodiscard]] const std::vector<at::Tensor>& gradients() const { return gradients_; }
  // In the order of the parameters; empty without momentum. All zero before the first step, which makes the
  // first step's momentum the gradient itself.
  [[nodiscard]] const std::vector<at::Tensor>& momenta() const { return momenta_; }

 private:
  template <class Rate>
  void fused_step(const Rate& lr, const std::optional<at::Tensor>& found_inf);
  struct Group {
    double weight_decay = 0;
    std::vector<at::Tensor> parameters, gradients, momenta;
  };
  SgdOptions options_;
  std::vector<at::Tensor> gradients_, momenta_;
  std::array<Group, 2> groups_;  // the second one's parameters do not decay
};

}  // namespace sluice
