#include "model/train/sgd.hpp"

namespace sluice {

namespace {

// The fused kernel copies what is not row-major; all values in the order of their memory serve it as well.
at::Tensor flat(const at::Tensor& t) { return t.detach().as_strided({t.numel()}, {1}); }

}  // namespace

Sgd::Sgd(const std::vector<at::Tensor>& parameters, SgdOptions options) : options_(options) {
  const at::NoGradGuard no_grad;
  groups_[0].weight_decay = options_.weight_decay;
  for (at::Tensor parameter : parameters) {
    // The three must have equal strides. Backward adds into the gradient in place, so it keeps those it has
    // now.
    if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
    Group& group = groups_[!options_.decay_all && parameter.dim() == 1 ? 1 : 0];
    group.parameters.push_back(flat(parameter));
    gradients_.push_back(parameter.grad());
    group.gradients.push_back(flat(parameter.grad()));
    if (options_.momentum == 0) continue;
    momenta_.push_back(at::zeros_like(parameter));
    group.momenta.push_back(flat(momenta_.back()));
  }
}

void Sgd::zero_gradients() {
  const at::NoGradGuard no_grad;
  at::_foreach_zero_(gradients_);
}

void Sgd::clip_gradients(double norm) {
  const at::NoGradGuard no_grad;
  const at::Tensor total = at::stack(at::_foreach_norm(gradients_)).norm();
  at::_foreach_mul_(gradients_, (norm / (total + 1e-6)).clamp_max(1.0));
}

void Sgd::step(double lr, const std::optional<at::Tensor>& found_inf) { fused_step(lr, found_inf); }
void Sgd::step(const at::Tensor& lr, const std::optional<at::Tensor>& found_inf) {
  fused_step(lr, found_inf);
}

template <class Rate>
void Sgd::fused_step(const Rate& lr, const std::optional<at::Tensor>& found_inf) {
  const at::NoGradGuard no_grad;
  for (Group& group : groups_)
    if (!group.parameters.empty())
      at::_fused_sgd_(group.parameters, group.gradients, group.momenta, group.weight_decay, options_.momentum,
                      lr, /*dampening=*/0.0, options_.nesterov, /*maximize=*/false, /*is_first_step=*/false,
                      /*grad_scale=*/{}, found_inf);
}

}  // namespace sluice
