// ResNet-18/34/50/101 as torchvision builds them: the same parameter and buffer names, the same shapes, the
// stride in the 3x3 convolution (v1.5), and the same distributions of initial weights.
#pragma once

#include <string>

#include "base/result.hpp"
#include "model/network/network_module.hpp"
#include "model/network/shape.hpp"
#include "model/network/sync_norm.hpp"
#include "pch/torch.hpp"

namespace sluice {

class ResNetImpl : public NetworkModule {
 public:
  ResNetImpl(const NetworkShape& shape, std::int64_t classes);
  at::Tensor forward(at::Tensor images) override;
  void recompute_blocks() override;

 private:
  at::Tensor stem(const at::Tensor& images);

  torch::nn::Conv2d conv1_{nullptr};
  Norm bn1_{nullptr};
  std::array<torch::nn::Sequential, 4> layers_{nullptr, nullptr, nullptr, nullptr};
  torch::nn::Linear fc_{nullptr};
  bool recompute_ = false;
};
TORCH_MODULE(ResNet);

// Seeds torch's default generator, so that the weights depend on (arch, classes, seed) alone. With
// `zero_init` the last norm of each block starts at zero.
Result<ResNet> make_resnet(const std::string& arch, std::int64_t classes, std::uint64_t seed,
                           bool zero_init = false);

}  // namespace sluice
