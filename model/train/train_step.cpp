#include "model/train/train_step_impl.hpp"

#include "model/device/cpu_memory.hpp"

namespace sluice {
namespace {

void to_channels_last(torch::nn::Module& network) {
  for (at::Tensor& parameter : network.parameters())
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
}

// Not Module::to, which would turn counts into floating point as well.
void to_double(torch::nn::Module& network) {
  const auto convert = [](at::Tensor t) {
    if (t.is_floating_point()) t.set_data(t.to(at::kDouble));
  };
  for (const at::Tensor& parameter : network.parameters()) convert(parameter);
  for (const at::Tensor& buffer : network.buffers()) convert(buffer);
}

PhaseSums sums_of(const double* values) {
  const auto whole = [&](int i) { return static_cast<std::int64_t>(values[i]); };
  return {values[0], whole(1), whole(2), whole(3), whole(4), whole(5), whole(6)};
}

}  // namespace

NetworkPointer Step::Impl::prepare(NetworkPointer network, const StepOptions& options,
                                   const Precision& precision, at::Device device) {
  network->to(device);
  if (precision.compute == at::kDouble) to_double(*network);
  if (options.channels_last) to_channels_last(*network);
  if (options.recompute) network->recompute_blocks();
  return network;
}

Result<Step> Step::create(const StepOptions& options) {
  Result<std::string> device = resolve_device(options.device);
  if (!device) return device.error();
  StepOptions resolved = options;
  resolved.device = *device;
  const auto precision = parse_precision(options.precision, at::Device(*device));
  if (!precision) return precision.error();
  std::unique_ptr<Impl> impl;
  const Status made = attempt("set-up", options.ranks, [&]() -> Status {
    const auto on = open_device(*device, options.device_index);
    if (!on) return on.error();
    (*on)->enter();
    if (*device == "cpu") keep_cpu_memory();
    if (options.threads > 0) at::set_num_threads(options.threads);
    apply(*precision);
    at::globalContext().setBenchmarkCuDNN(true);
    const auto build = [&] { return tensor_task(options.task.kind).build(options); };
    Result<NetworkPointer> network = build();
    if (!network) return network.error();
    impl = std::make_unique<Impl>(resolved, *network, *precision, *on);
    if (options.ema > 0)
      impl->average.emplace(Impl::prepare(*build(), options, *precision, impl->device), *impl->network,
                            options.ema);
    return Done{};
  });
  if (!made) return made.error();
  Step step(std::move(impl));
  if (const Status shared = step.share(); !shared) return shared.error();
  return step;
}

Status Step::train(DeviceBatch&& batch, const TrainStep& how) {
  const auto work = [&]() -> Status {
    Impl& it = *impl_;
    const auto [samples, labels] = it.take(batch, how.mix);
    it.network->train();
    it.trained = true;
    if (it.capture) return it.train_captured(samples, labels, how);
    if (it.pending == 0) it.begin_step();
    const BatchSums sums = it.task.loss(it.options, it.forward(samples), labels, how.mix);
    it.step_sums.add(sums);
    const at::Tensor loss = sums.mean() / it.options.accumulate;
    if (it.parallel && it.pending + 1 == it.options.accumulate) it.parallel->expect_gradients();
    (it.scaler ? it.scaler->scale(loss) : loss).backward();
    if (++it.pending < it.options.accumulate) return Done{};
    it.pending = 0;
    it.end_step(how);
    return Done{};
  };
  return attempt("training batch", impl_->options.ranks, [&] { return impl_->within_memory(batch, work); });
}

Status Step::eval(DeviceBatch&& batch) {
  const auto work = [&]() -> Status {
    Impl& it = *impl_;
    const auto [samples, labels] = it.take(batch);
    it.agree_on_statistics();
    const c10::InferenceMode inference;
    it.network->eval();
    it.eval_sums.add(it.evaluate(*it.network, samples, labels));
    if (it.average) it.ema_sums.add(it.evaluate(*it.average->network(), samples, labels));
    it.evaluated = true;
    return Done{};
  };
  return attempt("validation batch", impl_->options.ranks, [&] { return impl_->within_memory(batch, work); });
}

Result<StepSums> Step::read_back() {
  StepSums sums;
  const Status done = attempt("metrics", impl_->options.ranks, [&]() -> Status {
    Impl& it = *impl_;
    const bool taken = it.taken.has_value();
    const at::Tensor train = taken ? *std::exchange(it.taken, std::nullopt) : it.train_sums.values();
    std::vector<at::Tensor> parts{at::cat({train, it.eval_sums.values(), it.ema_sums.values()})};
    if (it.parallel && !taken) it.parallel->sum(parts[0]);
    if (it.parallel && taken && it.evaluated) {
      at::Tensor rest = parts[0].slice(0, Running::width);
      it.parallel->sum(rest);
    }
    it.evaluated = false;
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

Step::Step(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&&) noexcept = default;
Step::~Step() = default;

}  // namespace sluice
