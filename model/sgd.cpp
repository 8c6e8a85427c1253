#include "model/sgd.hpp"

namespace sluice {

Sgd::Sgd(std::vector<at::Tensor> parameters, SgdOptions options)
    : options_(options), parameters_(std::move(parameters)) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : parameters_) {
    // The fused kernel walks raw memory: the three must have equal strides. Backward adds into the gradient
    // in place, so it keeps the strides it gets here.
    parameter.mutable_grad() = at::zeros_like(parameter);
    gradients_.push_back(parameter.grad());
    if (options_.momentum != 0) momenta_.push_back(at::zeros_like(parameter));
  }
}

void Sgd::zero_gradients() {
  const at::NoGradGuard no_grad;
  at::_foreach_zero_(gradients_);
}

void Sgd::step(double lr, const std::optional<at::Tensor>& found_inf) {
  const at::NoGradGuard no_grad;
  at::_fused_sgd_(parameters_, gradients_, momenta_, options_.weight_decay, options_.momentum, lr,
                  /*dampening=*/0.0, options_.nesterov, /*maximize=*/false, /*is_first_step=*/false,
                  /*grad_scale=*/{}, found_inf);
}

}  // namespace sluice
