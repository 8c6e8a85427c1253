#include "nodes/step.hpp"

#include <optional>
#include <utility>

#include "model/checkpoint.hpp"
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
  return {values[0], whole(1), whole(2), whole(3), whole(4), whole(5)};
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
        sgd(network->parameters(), {o.momentum, o.weight_decay, o.nesterov}),
        input(device, p.compute, std::int64_t{o.batch} * o.image_size * o.image_size,
              make_affine(o.mean, o.std)),
        train_sums(device),
        eval_sums(device) {
    if (precision.scaled) scaler.emplace(device);
  }

  static ResNet prepare(ResNet network, const StepOptions& options, at::Device device) {
    network->to(device);
    if (options.channels_last) to_channels_last(*network);
    return network;
  }

  std::pair<at::Tensor, at::Tensor> take(DeviceBatch& batch) {
    const std::shared_ptr<void> released(nullptr, [&](void*) { batch.release(); });
    batch.wait();
    at::Tensor images = input.images(batch.pixels, batch.count, batch.size);
    if (!options.channels_last) images = images.contiguous();
    return {images, input.labels(batch.labels, batch.count)};
  }

  at::Tensor forward(const at::Tensor& images) {
    const Autocast autocast(precision, device);
    return network->forward(images);
  }

  NamedTensors weights() const {
    NamedTensors named;
    for (const auto& item : network->named_parameters())
      named.emplace_back("model." + item.key(), item.value());
    for (const auto& item : network->named_buffers()) named.emplace_back("model." + item.key(), item.value());
    return named;
  }

  NamedTensors everything() const {
    NamedTensors named = weights();
    const auto parameters = network->named_parameters();
    for (std::size_t i = 0; i < sgd.momenta().size(); ++i)
      named.emplace_back("momentum." + parameters[i].key(), sgd.momenta()[i]);
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
  Running train_sums, eval_sums;
  std::optional<Scaler> scaler;
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
    if (options.threads > 0) at::set_num_threads(options.threads);
    apply(*precision);
    at::globalContext().setBenchmarkCuDNN(true);
    auto network = make_resnet(options.arch, options.classes, options.seed);
    if (!network) return network.error();
    impl = std::make_unique<Impl>(resolved, *network, *precision);
    return Done{};
  });
  if (!made) return made.error();
  return Step(std::move(impl));
}

Status Step::train(DeviceBatch&& batch, double lr) {
  return attempt("training batch", [&]() -> Status {
    Impl& it = *impl_;
    const auto [images, labels] = it.take(batch);
    it.network->train();
    it.sgd.zero_gradients();
    const BatchSums sums = cross_entropy(it.forward(images), labels, it.options.label_smoothing);
    it.train_sums.add(sums);
    if (it.scaler) {
      it.scaler->scale(sums.mean()).backward();
      it.sgd.step(lr, it.scaler->unscale(it.sgd.gradients()));
      it.scaler->update();
    } else {
      sums.mean().backward();
      it.sgd.step(lr);
    }
    return Done{};
  });
}

Status Step::eval(DeviceBatch&& batch) {
  return attempt("validation batch", [&]() -> Status {
    const c10::InferenceMode inference;
    Impl& it = *impl_;
    const auto [images, labels] = it.take(batch);
    it.network->eval();
    it.eval_sums.add(cross_entropy(it.forward(images), labels, it.options.label_smoothing));
    return Done{};
  });
}

Result<StepSums> Step::read_back() {
  StepSums sums;
  const Status done = attempt("metrics", [&]() -> Status {
    Impl& it = *impl_;
    std::vector<at::Tensor> parts{it.train_sums.values(), it.eval_sums.values()};
    if (it.scaler) parts.push_back(at::stack({it.scaler->scale(), it.scaler->skipped()}).to(at::kDouble));
    const at::Tensor all = at::cat(parts).cpu();
    const double* values = all.const_data_ptr<double>();
    sums.train = sums_of(values);
    sums.eval = sums_of(values + 6);
    sums.finite = sums.eval.not_finite == 0 && (it.scaler || sums.train.not_finite == 0);
    if (it.scaler) {
      sums.loss_scale = values[12];
      sums.finite = sums.finite && values[13] < max_skips;
    }
    it.train_sums.reset();
    it.eval_sums.reset();
    return Done{};
  });
  if (!done) return done.error();
  return sums;
}

Status Step::snapshot(Snapshot& into) {
  return attempt("checkpoint", [&]() -> Status {
    into.arch = impl_->options.arch;
    into.classes = impl_->options.classes;
    into.source.clear();
    into.clear_tensors();
    copy_out(impl_->everything(), into);
    return Done{};
  });
}

Status Step::restore(const Snapshot& snapshot, Restore what) {
  const StepOptions& options = impl_->options;
  if (snapshot.arch != options.arch || snapshot.classes != options.classes)
    return Error{"checkpoint", snapshot.source,
                 "holds a " + snapshot.arch + " with " + std::to_string(snapshot.classes) +
                     " classes, the run is a " + options.arch + " with " + std::to_string(options.classes),
                 "take the configuration it was made with"};
  return attempt("checkpoint", [&] {
    return copy_in(snapshot, what == Restore::all ? impl_->everything() : impl_->weights());
  });
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
