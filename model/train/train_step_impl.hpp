// What a Step holds, for model/train/train_step*.cpp alone.
#pragma once

#include <optional>
#include <utility>

#include "base/function_ref.hpp"
#include "model/device/parallel.hpp"
#include "model/train/attempt.hpp"
#include "model/train/average.hpp"
#include "model/train/capture.hpp"
#include "model/train/loss.hpp"
#include "model/train/precision.hpp"
#include "model/train/scaler.hpp"
#include "model/train/sgd.hpp"
#include "model/train/step_inputs.hpp"
#include "model/train/tensor_task.hpp"
#include "model/train/train_step.hpp"
#include "model/weights/checkpoint.hpp"

namespace sluice {

struct Step::Impl {
  Impl(const StepOptions& o, NetworkPointer built, const Precision& p, const std::shared_ptr<Device>& where);

  // A network as a step has it: on its device, in its precision and layout.
  static NetworkPointer prepare(NetworkPointer network, const StepOptions& options,
                                const Precision& precision, at::Device device);
  // For train_step_state.cpp: calls `look` with a network as a step would have it, and with all that it would
  // save.
  template <class Look>
  static Status with_tensors(const char* subject, const StepOptions& options, const Look& look);

  // Samples and labels as the network gets them. The batch is released, whatever happens.
  std::pair<at::Tensor, at::Tensor> take(DeviceBatch& batch, const Mix& mix = {});
  at::Tensor forward(const at::Tensor& samples);
  BatchSums evaluate(NetworkModule& with, const at::Tensor& samples, const at::Tensor& labels);

  // The statistics of the norms change with every batch, all else with the step: what a checkpoint in between
  // (or after a batch that failed) must hold are those before the step's first batch.
  void begin_step();
  void end_step(const TrainStep& how);
  // A whole step, in memory that stays where it is.
  Status train_captured(const at::Tensor& samples, const at::Tensor& labels, const TrainStep& how);
  // Runs `body`; where the device's memory does not suffice for it, the error tells who holds it.
  Status within_memory(const DeviceBatch& batch, FunctionRef<Status()> body);
  // Norms that are not synchronised have statistics of their own on each rank; rank 0's are the network's.
  void agree_on_statistics();

  // Names and tensors, for snapshots (model/train/train_step_state.cpp).
  [[nodiscard]] NamedTensors weights() const;
  [[nodiscard]] NamedTensors everything();

  StepOptions options;
  std::shared_ptr<Device> on;
  at::Device device;
  Precision precision;
  const TensorTask& task;
  NetworkPointer network;
  std::unique_ptr<Parallel> parallel;  // before the optimiser: it says where gradients are
  Sgd sgd;
  std::unique_ptr<BatchInput> input;
  Running step_sums;  // of the step under way
  Running train_sums, eval_sums, ema_sums;
  std::optional<at::Tensor> taken;  // training sums over all ranks, for the read_back that follows
  bool evaluated = false;           // a batch since the last read_back
  int pending = 0;                  // batches of the step under way
  bool under_way = false;           // from a step's first batch to its end
  bool changing = false;            // within the optimiser
  bool trained = false;             // since ranks last agreed on statistics
  std::vector<at::Tensor> settled;  // the norms' statistics before the step under way
  std::optional<Scaler> scaler;
  std::optional<Average> average;
  std::optional<StepInputs> inputs;  // both for recorded steps
  std::optional<Capture> capture;

 private:
  template <class Rate>
  void optimise(const Rate& lr);
  void prepare_capture();
  [[nodiscard]] Error no_memory(int batch, const SampleLayout& sample);
};

}  // namespace sluice
