#include "nodes/step.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "model/average.hpp"
#include "model/checkpoint.hpp"
#include "model/cpu_memory.hpp"
#include "model/input.hpp"
#include "model/loss.hpp"
#include "model/precision.hpp"
#include "model/resnet.hpp"
#include "model/scaler.hpp"
#include "model/sgd.hpp"
#include "torch/cuda.h"

namespace sluice {
namespace {

void to_channels_last(torch::nn::Module& network) {
  for (at::Tensor& parameter : network.parameters())
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
}

PhaseSums sums_of(const double* values) {
  const auto whole = [&](int i) { return static_cast<std::int64_t>(values[i]); };
  return {values[0], whole(1), whole(2), whole(3), whole(4), whole(5), whole(6)};
}

// Runs `body`, which may throw as torch does, and gives its failure the shape of ours.
template <class Body>
Status attempt(const char* subject, const Body& body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    return Error{"step", subject, error.what_without_backtrace(), ""};
  } catch (const std::exception& error) {
    return Error{"step", subject, error.what(), ""};
  }
}

}  // namespace

struct Step::Impl {
  Impl(const StepOptions& o, ResNet built, const Precision& p)
      : options(o),
        device(o.device),
        precision(p),
        network(prepare(std::move(built), o, device)),
        sgd(network->parameters(), {o.momentum, o.weight_decay, o.nesterov, o.decay_all}),
        input(device, p.compute, std::int64_t{o.batch} * o.image_size * o.image_size,
              make_affine(o.mean, o.std)),
        step_sums(device),
        train_sums(device),
        eval_sums(device),
        ema_sums(device) {
    if (precision.scaled) scaler.emplace(device);
    if (options.accumulate > 1)
      for (const at::Tensor& buffer : network->buffers()) settled.push_back(buffer.clone());
  }

  static ResNet prepare(ResNet network, const StepOptions& options, at::Device device) {
    network->to(device);
    if (options.channels_last) to_channels_last(*network);
    return network;
  }

  std::pair<at::Tensor, at::Tensor> take(DeviceBatch& batch, const Mix& mix = {}) {
    const std::shared_ptr<void> released(nullptr, [&](void*) { batch.release(); });
    batch.wait();
    at::Tensor images = input.images(batch.pixels, batch.count, batch.size, mix);
    if (!options.channels_last) images = images.contiguous();
    return {images, input.labels(batch.labels, batch.count)};
  }

  BatchSums forward(ResNet& through, const at::Tensor& images, const at::Tensor& labels,
                    const Mix& mix = {}) {
    at::Tensor logits;
    {
      const Autocast autocast(precision, device);
      logits = through->forward(images);
    }
    return cross_entropy(logits, labels, options.label_smoothing, mix);
  }

  // The statistics of the norms change with every batch, all else with the step: what a checkpoint in between
  // must hold are those before the step's first batch.
  void begin_step() {
    const at::NoGradGuard no_grad;
    sgd.zero_gradients();
    step_sums.reset();
    if (!settled.empty()) at::_foreach_copy_(settled, network->buffers());
  }

  void end_step(const TrainStep& how) {
    std::optional<at::Tensor> found_inf;
    if (scaler) found_inf = scaler->unscale(sgd.gradients());
    if (options.clip > 0) sgd.clip_gradients(options.clip);
    sgd.step(how.lr, found_inf);
    if (scaler) scaler->update();
    if (average) average->update(how.steps + 1);
    train_sums.add(step_sums);
  }

  NamedTensors weights() const { return named(network, "model."); }

  NamedTensors named(const ResNet& of, const std::string& prefix) const {
    NamedTensors named;
    for (const auto& item : of->named_parameters()) named.emplace_back(prefix + item.key(), item.value());
    for (const auto& item : of->named_buffers()) named.emplace_back(prefix + item.key(), item.value());
    return named;
  }

  NamedTensors everything() {
    NamedTensors named = weights();
    const auto parameters = network->named_parameters();
    if (pending > 0)
      for (std::size_t i = 0; i < settled.size(); ++i) named[parameters.size() + i].second = settled[i];
    for (std::size_t i = 0; i < sgd.momenta().size(); ++i)
      named.emplace_back("momentum." + parameters[i].key(), sgd.momenta()[i]);
    if (average)
      for (auto& tensor : this->named(average->network(), "ema.")) named.push_back(std::move(tensor));
    if (scaler) {
      named.emplace_back("scaler.scale", scaler->scale());
      named.emplace_back("scaler.good", scaler->good());
      named.emplace_back("scaler.skipped", scaler->skipped());
    }
    return named;
  }

  StepOptions options;
  at::Device device;
  Precision precision;
  ResNet network;
  Sgd sgd;
  Input input;
  Running step_sums;  // of the step under way
  Running train_sums, eval_sums, ema_sums;
  int pending = 0;  // batches of the step under way
  std::vector<at::Tensor> settled;
  std::optional<Scaler> scaler;
  std::optional<Average> average;
};

Result<Step> Step::create(const StepOptions& options) {
  Result<std::string> device = resolve_device(options.device);
  if (!device) return device.error();
  StepOptions resolved = options;
  resolved.device = *device;
  const auto precision = parse_precision(options.precision, at::Device(*device));
  if (!precision) return precision.error();
  std::unique_ptr<Impl> impl;
  const Status made = attempt("set-up", [&]() -> Status {
    if (*device == "cpu") keep_cpu_memory();
    if (options.threads > 0) at::set_num_threads(options.threads);
    apply(*precision);
    at::globalContext().setBenchmarkCuDNN(true);
    const auto build = [&] {
      return make_resnet(options.arch, options.classes, options.seed, options.zero_init);
    };
    Result<ResNet> network = build();
    if (!network) return network.error();
    impl = std::make_unique<Impl>(resolved, *network, *precision);
    if (options.ema > 0)
      impl->average.emplace(Impl::prepare(*build(), options, impl->device), impl->network, options.ema);
    return Done{};
  });
  if (!made) return made.error();
  return Step(std::move(impl));
}

Status Step::train(DeviceBatch&& batch, const TrainStep& how) {
  return attempt("training batch", [&]() -> Status {
    Impl& it = *impl_;
    const auto [images, labels] = it.take(batch, how.mix);
    it.network->train();
    if (it.pending == 0) it.begin_step();
    const BatchSums sums = it.forward(it.network, images, labels, how.mix);
    it.step_sums.add(sums);
    const at::Tensor loss = sums.mean() / it.options.accumulate;
    (it.scaler ? it.scaler->scale(loss) : loss).backward();
    if (++it.pending < it.options.accumulate) return Done{};
    it.pending = 0;
    it.end_step(how);
    return Done{};
  });
}

Status Step::eval(DeviceBatch&& batch) {
  return attempt("validation batch", [&]() -> Status {
    const c10::InferenceMode inference;
    Impl& it = *impl_;
    const auto [images, labels] = it.take(batch);
    it.network->eval();
    it.eval_sums.add(it.forward(it.network, images, labels));
    if (it.average) it.ema_sums.add(it.forward(it.average->network(), images, labels));
    return Done{};
  });
}

Result<StepSums> Step::read_back() {
  StepSums sums;
  const Status done = attempt("metrics", [&]() -> Status {
    Impl& it = *impl_;
    std::vector<at::Tensor> parts{it.train_sums.values(), it.eval_sums.values(), it.ema_sums.values()};
    if (it.scaler) parts.push_back(at::stack({it.scaler->scale(), it.scaler->skipped()}).to(at::kDouble));
    const at::Tensor all = at::cat(parts).cpu();
    const double* values = all.const_data_ptr<double>();
    sums.train = sums_of(values);
    sums.eval = sums_of(values + Running::width);
    sums.ema = sums_of(values + 2 * Running::width);
    sums.finite = sums.eval.not_finite == 0 && (it.scaler || sums.train.not_finite == 0);
    if (it.scaler) {
      sums.loss_scale = values[3 * Running::width];
      sums.finite = sums.finite && values[3 * Running::width + 1] < max_skips;
    }
    it.train_sums.reset();
    it.eval_sums.reset();
    it.ema_sums.reset();
    return Done{};
  });
  if (!done) return done.error();
  return sums;
}

Status Step::snapshot(Snapshot& into) {
  return attempt("checkpoint", [&]() -> Status {
    into.arch = impl_->options.arch;
    into.classes = impl_->options.classes;
    const at::NoGradGuard no_grad;
    // A checkpoint is there to go on from: weights that have run away must not replace sound ones.
    const at::Tensor norms = at::stack(at::_foreach_norm(impl_->network->parameters()));
    if (!at::isfinite(norms).all().item<bool>())
      return Error{"step", "weights", "are not finite, and are not saved",
                   "lower optim.lr or lengthen schedule.warmup_epochs"};
    into.source.clear();
    into.clear_tensors();
    copy_out(impl_->everything(), into);
    return Done{};
  });
}

Status Step::restore(const Snapshot& snapshot) {
  const StepOptions& options = impl_->options;
  if (snapshot.arch != options.arch || snapshot.classes != options.classes)
    return Error{"checkpoint", snapshot.source,
                 "holds a " + snapshot.arch + " with " + std::to_string(snapshot.classes) +
                     " classes, the run is a " + options.arch + " with " + std::to_string(options.classes),
                 "take the configuration it was made with"};
  return attempt("checkpoint", [&] { return copy_in(snapshot, impl_->everything()); });
}

Result<bool> Step::start_from(const Snapshot& weights) {
  bool anew = false;
  const Status done = attempt("weights", [&]() -> Status {
    Impl& it = *impl_;
    Result<NamedTensors> fitting = fitting_weights(weights, it.weights());
    if (!fitting) return fitting.error();
    anew = std::ranges::none_of(*fitting, [](const auto& t) { return t.first == "model.fc.weight"; });
    if (Status copied = copy_in(weights, *fitting); !copied) return copied;
    if (it.average) it.average->restart();
    return Done{};
  });
  if (!done) return done.error();
  return anew;
}

std::int64_t Step::parameters() const {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : impl_->network->parameters()) count += parameter.numel();
  return count;
}

Step::Step(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&&) noexcept = default;
Step::~Step() = default;

Result<std::string> resolve_device(const std::string& asked) {
  if (asked == "cpu") return asked;
  if (asked != "auto" && asked != "cuda")
    return Error{"model", "model.device", "there is no device \"" + asked + "\"",
                 "take one of auto, cpu, cuda"};
#ifdef SLUICE_CUDA
  if (torch::cuda::is_available()) return std::string("cuda");
  const char* why = "CUDA was asked for, but no GPU can be used on this machine";
  const char* hint = "check the driver with nvidia-smi, or run on the CPU: --set model.device=cpu";
#else
  const char* why = "CUDA was asked for, but this build has none";
  const char* hint = "build with `./sluice build --cuda`, or run on the CPU: --set model.device=cpu";
#endif
  if (asked == "auto") return std::string("cpu");
  return Error{"model", "model.device", why, hint};
}

}  // namespace sluice
