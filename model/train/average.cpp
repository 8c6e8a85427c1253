#include "model/train/average.hpp"

namespace sluice {

Average::Average(NetworkPointer like, const NetworkModule& source, double decay)
    : network_(std::move(like)), decay_(decay) {
  const auto take = [&](std::vector<at::Tensor> ours, std::vector<at::Tensor> theirs) {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ours[i].requires_grad_(false);
      const bool floating = ours[i].is_floating_point();
      (floating ? averaged_ : counts_).push_back(ours[i]);
      (floating ? source_ : source_counts_).push_back(theirs[i]);
    }
  };
  take(network_->parameters(), source.parameters());
  take(network_->buffers(), source.buffers());
  network_->eval();
  restart();
}

void Average::update(std::uint64_t steps) {
  const at::NoGradGuard no_grad;
  const auto n = static_cast<double>(steps);
  const double decay = std::min(decay_, (1 + n) / (10 + n));
  at::_foreach_lerp_(averaged_, source_, 1 - decay);
  at::_foreach_copy_(counts_, source_counts_);
}

void Average::restart() {
  const at::NoGradGuard no_grad;
  at::_foreach_copy_(averaged_, source_);
  at::_foreach_copy_(counts_, source_counts_);
}

}  // namespace sluice
