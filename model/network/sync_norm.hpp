// Batch norm whose statistics are taken over the batches of all ranks. Forward and backward each sum one
// small tensor over the ranks; where no sum is set, it is the batch norm of model/network/batch_norm.hpp.
#pragma once

#include <functional>
#include <memory>

#include "pch/torch.hpp"

namespace sluice {

using SumOverRanks = std::function<void(at::Tensor& values)>;

class NormImpl : public torch::nn::BatchNorm2dImpl {
 public:
  using torch::nn::BatchNorm2dImpl::BatchNorm2dImpl;
  std::shared_ptr<const SumOverRanks> sum;  // null: statistics are this rank's own
};
TORCH_MODULE(Norm);

// From now on all norms in the network sum over the ranks in training; all ranks then pass through them in
// the same order.
void synchronise_norms(torch::nn::Module& network, SumOverRanks sum);

[[nodiscard]] at::Tensor normalise(Norm& norm, const at::Tensor& images);
[[nodiscard]] at::Tensor normalise_relu(Norm& norm, const at::Tensor& images);
[[nodiscard]] at::Tensor normalise_add_relu(Norm& norm, const at::Tensor& images, const at::Tensor& other);

}  // namespace sluice
