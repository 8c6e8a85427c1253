// What to say when the device's memory runs out: who holds how much, and the batch that would fit. Pure
// arithmetic, free of torch.
#pragma once

#include <cstddef>

#include "base/result.hpp"
#include "model/device/device.hpp"

namespace sluice {

struct DeviceUse {
  std::size_t total = 0, free = 0;  // of the device; what torch keeps unused counts as free
  std::size_t weights = 0, gradients = 0, optimiser = 0, average = 0;
  std::size_t input = 0;        // ring and converted batch
  std::size_t activations = 0;  // all else of ours at that moment: the step had not come to its end
  std::size_t image_needs = 0;  // activations of one image in a whole step, by estimate
  int batch = 0;
  bool recompute = false;
};

// Fills in total, free, input and activations as they were when memory was fullest, which is when it ran out:
// by now the step's tensors are gone. `use` holds the other owners, and in `input` the converted batch.
void add_figures(DeviceUse& use, const Device::Memory& memory);

// The largest multiple of 8 below the batch that failed whose activations fit into what is free and what
// activations held, in proportion to the batch; 0 where not even 8 images do.
[[nodiscard]] int fitting_batch(const DeviceUse& use);

[[nodiscard]] Error out_of_memory(const DeviceUse& use);

}  // namespace sluice
