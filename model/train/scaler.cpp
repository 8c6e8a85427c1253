#include "model/train/scaler.hpp"

namespace sluice {

Scaler::Scaler(at::Device device)
    : scale_(at::full({}, 65536.0, at::TensorOptions(device).dtype(at::kFloat))),
      good_(at::zeros({}, at::TensorOptions(device).dtype(at::kInt))),
      skipped_(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))),
      found_inf_(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))) {}

const at::Tensor& Scaler::unscale(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  found_inf_.zero_();
  const at::Tensor inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf_, inverse);
  return found_inf_;
}

void Scaler::update() {
  const at::NoGradGuard no_grad;
  skipped_.add_(1).mul_(found_inf_);
  at::_amp_update_scale_(scale_, good_, found_inf_, 2.0, 0.5, 2000);
}

}  // namespace sluice
