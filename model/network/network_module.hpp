// What a training step asks of a network beyond what torch knows of every module.
#pragma once

#include <memory>

#include "pch/torch.hpp"

namespace sluice {

class NetworkModule : public torch::nn::Module {
 public:
  virtual at::Tensor forward(at::Tensor input) = 0;
  // From now on each block keeps its input alone for the backward pass (see model/network/recompute.hpp).
  virtual void recompute_blocks() = 0;
};

using NetworkPointer = std::shared_ptr<NetworkModule>;

}  // namespace sluice
