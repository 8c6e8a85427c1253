// What a Step holds, for model/train/train_step.cpp and model/train/train_step_state.cpp alone.
#pragma once

#include <optional>
#include <utility>

#include "base/printable.hpp"
#include "model/device/parallel.hpp"
#include "model/device/vram.hpp"
#include "model/network/sync_norm.hpp"
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

// A connection ends before it is known whose end it was; what is known then says more.
inline Error told(const std::shared_ptr<Ranks>& ranks, Error error) {
  return ranks ? ranks->verdict(ranks->patience()).value_or(std::move(error)) : error;
}

// Runs `body`, which may throw as torch does, and gives its failure the shape of ours.
template <class Body>
Status attempt(const char* subject, const std::shared_ptr<Ranks>& ranks, const Body& body) {
  try {
    return body();
  } catch (const c10::DistError& error) {
    return told(ranks, {"step", subject, error.what_without_backtrace(), ""});
  } catch (const c10::Error& error) {
    return Error{"step", subject, error.what_without_backtrace(), ""};
  } catch (const std::exception& error) {
    return told(ranks, {"step", subject, printable(error.what()), ""});
  }
}

struct Step::Impl {
  Impl(const StepOptions& o, NetworkPointer built, const Precision& p, const std::shared_ptr<Device>& where)
      : options(o),
        on(where),
        device(o.device == "cuda" ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(o.device_index))
                                  : at::Device(o.device)),
        precision(p),
        task(tensor_task(o.task.kind)),
        network(prepare(std::move(built), o, p, device)),
        parallel(connect(o, network)),
        sgd(network->parameters(), {o.momentum, o.weight_decay, o.nesterov, o.decay_all}),
        input(task.input(o, on, device, p.compute)),
        step_sums(device),
        train_sums(device),
        eval_sums(device),
        ema_sums(device) {
    if (precision.scaled) scaler.emplace(device);
    prepare_capture();
    if (parallel && options.sync_bn)
      synchronise_norms(*network, [&with = *parallel](at::Tensor& values) { with.sum(values); });
    for (const at::Tensor& buffer : network->buffers()) settled.push_back(buffer.clone());
  }

  static NetworkPointer prepare(NetworkPointer network, const StepOptions& options,
                                const Precision& precision, at::Device device);

  // For step_state.cpp: calls `look` with a network as a step would have it, and with all that it would save.
  template <class Look>
  static Status with_tensors(const char* subject, const StepOptions& options, const Look& look);

  static std::unique_ptr<Parallel> connect(const StepOptions& options, const NetworkPointer& network) {
    if (!options.ranks) return nullptr;
    NamedTensors parameters;
    for (const auto& item : network->named_parameters()) parameters.emplace_back(item.key(), item.value());
    return std::make_unique<Parallel>(options.ranks, parameters, options.trace);
  }

  std::pair<at::Tensor, at::Tensor> take(DeviceBatch& batch, const Mix& mix = {}) {
    const std::shared_ptr<void> released(nullptr, [&](void*) { batch.release(); });
    batch.wait();
    return {input->samples(batch, mix), input->labels(batch)};
  }

  at::Tensor forward(const at::Tensor& samples) {
    const Autocast autocast(precision, device);
    return network->forward(samples);
  }

  BatchSums evaluate(NetworkModule& with, const at::Tensor& samples, const at::Tensor& labels) {
    at::Tensor output;
    {
      const Autocast autocast(precision, device);
      output = task.evaluate(with, samples);
    }
    return task.loss(options, output, labels, {});
  }

  // The statistics of the norms change with every batch, all else with the step: what a checkpoint in between
  // (or after a batch that failed) must hold are those before the step's first batch.
  void begin_step() {
    const at::NoGradGuard no_grad;
    under_way = true;
    sgd.zero_gradients();
    step_sums.reset();
    at::_foreach_copy_(settled, network->buffers());
  }

  template <class Rate>
  void optimise(const Rate& lr) {
    std::optional<at::Tensor> found_inf;
    if (scaler) found_inf = scaler->unscale(sgd.gradients());
    if (options.clip > 0) sgd.clip_gradients(options.clip);
    sgd.step(lr, found_inf);
    if (scaler) scaler->update();
    train_sums.add(step_sums);
  }

  void end_step(const TrainStep& how) {
    if (parallel && how.read_back) {
      at::Tensor values = train_sums.values() + step_sums.values();
      parallel->sum(values);
      taken = values;
    }
    changing = true;
    optimise(how.lr);
    if (average) average->update(how.steps + 1);
    changing = under_way = false;
  }

  void prepare_capture() {
    if (options.compile != "graph") return;
    const std::string why =
        why_no_capture(options.device, !options.ranks, options.accumulate, options.channels_last);
    if (!why.empty()) return options.note("model.compile = \"graph\" has no effect: " + why);
    inputs.emplace(device, input->label_room(options.batch));
    capture.emplace(on, options.batch, options.task.sample.width(), options.note);
  }

  // A whole step, in memory that stays where it is.
  Status train_captured(const at::Tensor& samples, const at::Tensor& labels, const TrainStep& how) {
    inputs->set(labels, how.lr, how.mix);
    changing = true;
    const auto work = [&]() -> Status {
      sgd.zero_gradients();
      step_sums.reset();
      const BatchSums sums = task.recorded_loss(options, forward(samples), inputs->labels, inputs->mix);
      step_sums.add(sums);
      (scaler ? scaler->scale(sums.mean()) : sums.mean()).backward();
      optimise(inputs->lr);
      return Done{};
    };
    Status done = capture->run(static_cast<int>(samples.size(0)), static_cast<int>(samples.size(-1)), work);
    if (!done) return done;
    if (average) average->update(how.steps + 1);
    changing = false;
    return done;
  }

  // Who holds the device's memory, after it ran out at this batch.
  Error no_memory(int batch, const SampleLayout& sample) {
    const auto bytes = [](const std::vector<at::Tensor>& tensors) {
      std::size_t sum = 0;
      for (const at::Tensor& t : tensors) sum += t.nbytes();
      return sum;
    };
    DeviceUse use;
    use.weights = bytes(network->parameters()) + bytes(network->buffers());
    use.gradients = bytes(sgd.gradients());
    use.optimiser = bytes(sgd.momenta());
    if (average) use.average = use.weights;
    use.input = input->bytes();
    constexpr std::int64_t some = 64;  // images: what does not depend on their number hardly counts then
    use.image_needs =
        options.task
            .step_memory(sample, {options.arch, options.classes, 0, some, options.precision,
                                  options.device == "cpu", options.channels_last, options.recompute})
            .peak /
        some;
    use.batch = batch;
    use.recompute = options.recompute;
    add_figures(use, on->memory());
    return out_of_memory(use);
  }

  template <class Body>
  Status within_memory(const DeviceBatch& batch, const Body& body) {
    try {
      return body();
    } catch (const c10::OutOfMemoryError&) {
      return no_memory(batch.count, batch.sample);
    }
  }

  // Norms that are not synchronised have statistics of their own on each rank; rank 0's are the network's.
  void agree_on_statistics() {
    if (!parallel || options.sync_bn || !std::exchange(trained, false)) return;
    std::vector<at::Tensor> buffers = network->buffers();
    if (average)
      for (const at::Tensor& buffer : average->network()->buffers()) buffers.push_back(buffer);
    parallel->from_first(buffers);
  }

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
};

}  // namespace sluice
