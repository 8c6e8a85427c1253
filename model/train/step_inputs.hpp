// What differs from one recorded step to the next besides the images, in memory of the device that stays
// where it is: labels, learning rate, and how the batch is mixed. (See model/train/capture.hpp.)
#pragma once

#include "model/train/loss.hpp"

namespace sluice {

struct StepInputs {
  StepInputs(at::Device device, at::Tensor label_room)
      : mix(device),
        lr(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))),
        memory(std::move(label_room)) {}

  // Queued like all other work: nothing waits, and nothing of the host's is read later.
  void set(const at::Tensor& of, double rate, const Mix& how) {
    const at::NoGradGuard no_grad;
    labels = memory.narrow(0, 0, of.size(0));
    labels.copy_(of);
    lr.fill_(rate);
    mix.set(how);
  }

  MixOnDevice mix;
  at::Tensor lr, labels;

 private:
  at::Tensor memory;
};

}  // namespace sluice
