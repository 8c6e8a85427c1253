// The side of a task (model/task.hpp) that works on tensors: network, conversion, loss, evaluation. Plain
// functions of the step's options; image classification is the first to fill them in.
#pragma once

#include "model/network/network_module.hpp"
#include "model/train/batch_input.hpp"
#include "model/train/loss.hpp"
#include "model/train/train_step.hpp"

namespace sluice {

struct TensorTask {
  // With initial weights that depend on the options alone, on the CPU.
  Result<NetworkPointer> (*build)(const StepOptions& options);
  // `compute` is the type that the network computes with.
  std::unique_ptr<BatchInput> (*input)(const StepOptions& options, const std::shared_ptr<Device>& on,
                                       at::Device device, at::ScalarType compute);
  // Loss and metrics of a batch, from what the network gave; the second form is for a step that is recorded.
  BatchSums (*loss)(const StepOptions& options, const at::Tensor& output, const at::Tensor& labels,
                    const Mix& mix);
  BatchSums (*recorded_loss)(const StepOptions& options, const at::Tensor& output, const at::Tensor& labels,
                             const MixOnDevice& mix);
  // What the network gives for samples that are evaluated, whatever their size.
  at::Tensor (*evaluate)(NetworkModule& network, const at::Tensor& samples);
};

// Throws std::logic_error for a kind that is not there.
[[nodiscard]] const TensorTask& tensor_task(const std::string& kind);

}  // namespace sluice
