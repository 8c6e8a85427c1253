// What a training step holds at most beside weights, gradients and momenta: activations that the backward
// pass needs, gradients on their way, scratch of the convolutions. Found by walking the network forward and
// backward with a tape of what is taken and given up, as this program's step does. Free of torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice {

struct StepShape {
  std::string arch = "resnet50";
  std::int64_t classes = 1000, image_size = 224, batch = 256;
  std::string precision = "fp32";  // fp32, tf32, bf16, fp16, fp64
  bool cpu = false;
  bool channels_last = true, recompute = false;
};

struct StepMemory {
  std::size_t kept = 0;  // when the forward pass is done
  std::size_t peak = 0;
  std::size_t validation = 0;  // the peak of a batch that is only judged
};

// Zero for a network that does not exist.
[[nodiscard]] StepMemory step_memory(const StepShape& shape);

// Of the whole network: weights, and what each copy of them takes.
struct NetworkBytes {
  std::size_t parameters = 0;  // each of weights, gradients, momenta
  std::size_t buffers = 0;     // running statistics and counts
};
[[nodiscard]] NetworkBytes network_bytes(const std::string& arch, std::int64_t classes,
                                         const std::string& precision);

}  // namespace sluice
