// Dynamic loss scaling for fp16 gradients, with torch.amp.GradScaler's rules and numbers: a step whose
// gradients overflow is left out and halves the scale, 2000 good steps in a row double it. Never waits for
// the device.
#pragma once

#include "pch/torch.hpp"

namespace sluice {

class Scaler {
 public:
  explicit Scaler(at::Device device);

  [[nodiscard]] at::Tensor scale(const at::Tensor& loss) const { return loss * scale_; }
  // Divides the gradients by the scale; the result is 1 if one of them is not finite, else 0.
  const at::Tensor& unscale(const std::vector<at::Tensor>& gradients);
  void update();  // once per step, after the optimiser

  // scale (float), good steps in a row (int32), left-out steps in a row (float): what a checkpoint must hold.
  [[nodiscard]] const at::Tensor& scale() const { return scale_; }
  [[nodiscard]] const at::Tensor& good() const { return good_; }
  [[nodiscard]] const at::Tensor& skipped() const { return skipped_; }

 private:
  at::Tensor scale_, good_, skipped_, found_inf_;
};

// So many steps left out in a row mean that no scale helps: the halvings have used up the first scale of
// 2^16.
inline constexpr int max_skips = 16;

}  // namespace sluice
