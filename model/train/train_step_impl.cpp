#include "model/train/train_step_impl.hpp"

#include "model/device/vram.hpp"
#include "model/network/sync_norm.hpp"

namespace sluice {
namespace {

std::unique_ptr<Parallel> connect(const StepOptions& options, const NetworkPointer& network) {
  if (!options.ranks) return nullptr;
  NamedTensors parameters;
  for (const auto& item : network->named_parameters()) parameters.emplace_back(item.key(), item.value());
  return std::make_unique<Parallel>(options.ranks, parameters, options.trace);
}

// Gives a batch back at the end of a scope.
struct Releasing {
  explicit Releasing(DeviceBatch& which) : batch(which) {}
  Releasing(const Releasing&) = delete;
  Releasing& operator=(const Releasing&) = delete;
  ~Releasing() { batch.release(); }
  DeviceBatch& batch;
};

}  // namespace

Step::Impl::Impl(const StepOptions& o, NetworkPointer built, const Precision& p,
                 const std::shared_ptr<Device>& where)
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

std::pair<at::Tensor, at::Tensor> Step::Impl::take(DeviceBatch& batch, const Mix& mix) {
  const Releasing releasing(batch);
  batch.wait();
  return {input->samples(batch, mix), input->labels(batch)};
}

at::Tensor Step::Impl::forward(const at::Tensor& samples) {
  const Autocast autocast(precision, device);
  return network->forward(samples);
}

BatchSums Step::Impl::evaluate(NetworkModule& with, const at::Tensor& samples, const at::Tensor& labels) {
  at::Tensor output;
  {
    const Autocast autocast(precision, device);
    output = task.evaluate(with, samples);
  }
  return task.loss(options, output, labels, {});
}

void Step::Impl::begin_step() {
  const at::NoGradGuard no_grad;
  under_way = true;
  sgd.zero_gradients();
  step_sums.reset();
  at::_foreach_copy_(settled, network->buffers());
}

template <class Rate>
void Step::Impl::optimise(const Rate& lr) {
  std::optional<at::Tensor> found_inf;
  if (scaler) found_inf = scaler->unscale(sgd.gradients());
  if (options.clip > 0) sgd.clip_gradients(options.clip);
  sgd.step(lr, found_inf);
  if (scaler) scaler->update();
  train_sums.add(step_sums);
}

void Step::Impl::end_step(const TrainStep& how) {
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

void Step::Impl::prepare_capture() {
  if (options.compile != "graph") return;
  const std::string why =
      why_no_capture(options.device, !options.ranks, options.accumulate, options.channels_last);
  if (!why.empty()) return options.note("model.compile = \"graph\" has no effect: " + why);
  inputs.emplace(device, input->label_room(options.batch));
  capture.emplace(on, options.batch, options.task.sample.width(), options.note);
}

Status Step::Impl::train_captured(const at::Tensor& samples, const at::Tensor& labels, const TrainStep& how) {
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

Error Step::Impl::no_memory(int batch, const SampleLayout& sample) {
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

Status Step::Impl::within_memory(const DeviceBatch& batch, FunctionRef<Status()> body) {
  try {
    return body();
  } catch (const c10::OutOfMemoryError&) {
    return no_memory(batch.count, batch.sample);
  }
}

void Step::Impl::agree_on_statistics() {
  if (!parallel || options.sync_bn || !std::exchange(trained, false)) return;
  std::vector<at::Tensor> buffers = network->buffers();
  if (average)
    for (const at::Tensor& buffer : average->network()->buffers()) buffers.push_back(buffer);
  parallel->from_first(buffers);
}

}  // namespace sluice
