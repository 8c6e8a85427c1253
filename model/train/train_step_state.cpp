// What a step's weights and optimiser are saved as, and taken from.
#include <algorithm>
#include <future>

#include "base/printable.hpp"
#include "model/train/train_step_impl.hpp"

namespace sluice {
namespace {

NamedTensors named_tensors(const NetworkModule& of, const std::string& prefix) {
  NamedTensors all;
  for (const auto& item : of.named_parameters()) all.emplace_back(prefix + item.key(), item.value());
  for (const auto& item : of.named_buffers()) all.emplace_back(prefix + item.key(), item.value());
  return all;
}

// All that a checkpoint holds, under its names.
NamedTensors saved_tensors(const NetworkModule& network, const std::vector<at::Tensor>& momenta,
                           const NetworkModule* average, const Scaler* scaler) {
  NamedTensors named = named_tensors(network, "model.");
  const auto parameters = network.named_parameters();
  for (std::size_t i = 0; i < momenta.size(); ++i)
    named.emplace_back("momentum." + parameters[i].key(), momenta[i]);
  if (average)
    for (auto& tensor : named_tensors(*average, "ema.")) named.push_back(std::move(tensor));
  if (scaler) {
    named.emplace_back("scaler.scale", scaler->scale());
    named.emplace_back("scaler.good", scaler->good());
    named.emplace_back("scaler.skipped", scaler->skipped());
  }
  return named;
}

Status of_this_network(const StepOptions& options, const Snapshot& snapshot) {
  if (snapshot.arch == options.arch && snapshot.classes == options.classes) return Done{};
  return Error{"checkpoint", snapshot.source,
               "holds a " + printable(snapshot.arch) + " with " + std::to_string(snapshot.classes) +
                   " classes, the run is a " + options.arch + " with " + std::to_string(options.classes),
               "take the configuration it was made with"};
}

}  // namespace

NamedTensors Step::Impl::weights() const { return named_tensors(*network, "model."); }

NamedTensors Step::Impl::everything() {
  NamedTensors named = saved_tensors(*network, sgd.momenta(), average ? average->network().get() : nullptr,
                                     scaler ? &*scaler : nullptr);
  const std::size_t parameters = network->parameters().size();
  if (under_way)
    for (std::size_t i = 0; i < settled.size(); ++i) named[parameters + i].second = settled[i];
  return named;
}

// The shapes come from a network that is built for the purpose and thrown away, on a thread of its own: what
// torch keeps for each thread that computes goes with it.
template <class Look>
Status Step::Impl::with_tensors(const char* subject, const StepOptions& options, const Look& look) {
  const auto body = [&]() -> Status {
    if (options.threads > 0) at::set_num_threads(options.threads);  // no more than were counted
    const auto precision = parse_precision(options.precision, at::Device(options.device));
    if (!precision) return precision.error();
    Result<NetworkPointer> built = tensor_task(options.task.kind).build(options);
    if (!built) return built.error();
    const NetworkPointer network = prepare(*built, options, *precision, at::kCPU);
    std::optional<Scaler> scaler;
    if (precision->scaled) scaler.emplace(at::kCPU);
    const std::vector<at::Tensor> momenta =
        options.momentum == 0 ? std::vector<at::Tensor>() : network->parameters();
    return look(*network, saved_tensors(*network, momenta, options.ema > 0 ? network.get() : nullptr,
                                        scaler ? &*scaler : nullptr));
  };
  return std::async(std::launch::async, [&] { return attempt(subject, nullptr, body); }).get();
}

Status Step::would_restore(const StepOptions& options, const Snapshot& snapshot) {
  if (Status same = of_this_network(options, snapshot); !same) return same;
  return Impl::with_tensors("checkpoint", options, [&](const NetworkModule&, const NamedTensors& tensors) {
    return fits(snapshot, tensors);
  });
}

Status Step::would_start_from(const StepOptions& options, const Snapshot& weights) {
  return Impl::with_tensors(
      "weights", options, [&](const NetworkModule& network, const NamedTensors&) -> Status {
        const Result<NamedTensors> fitting = fitting_weights(weights, named_tensors(network, "model."));
        if (!fitting) return fitting.error();
        return fits(weights, *fitting);
      });
}

Status Step::snapshot(Snapshot& into) {
  return attempt("checkpoint", nullptr, [&]() -> Status {
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
  if (Status same = of_this_network(impl_->options, snapshot); !same) return same;
  return attempt("checkpoint", nullptr, [&] { return copy_in(snapshot, impl_->everything()); });
}

Result<bool> Step::start_from(const Snapshot& weights) {
  bool anew = false;
  const Status done = attempt("weights", nullptr, [&]() -> Status {
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

Status Step::share() {
  if (!impl_->parallel) return Done{};
  return attempt("weights", impl_->options.ranks, [&]() -> Status {
    std::vector<at::Tensor> tensors;
    for (const auto& [name, tensor] : impl_->everything()) tensors.push_back(tensor.detach());
    impl_->parallel->from_first(tensors);
    return Done{};
  });
}

bool Step::intact() const { return !impl_->changing; }

std::int64_t Step::parameters() const {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : impl_->network->parameters()) count += parameter.numel();
  return count;
}

}  // namespace sluice
