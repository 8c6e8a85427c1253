#include "model/network/sync_norm.hpp"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "model/network/batch_norm.hpp"
#include "model/network/recompute.hpp"

namespace sluice {

namespace {

// What autograd can hold on to until the backward pass.
struct HeldSum : torch::CustomClassHolder {
  explicit HeldSum(std::shared_ptr<const SumOverRanks> f) : sum(std::move(f)) {}
  std::shared_ptr<const SumOverRanks> sum;
};

struct RankStatistics {
  at::Tensor count, mean, var;  // double
};

// Sums of values and squares in double lose nothing that matters to the variance of floats.
RankStatistics measure(const at::Tensor& images, const at::Tensor& weight, const SumOverRanks& sum) {
  const at::Tensor unused_mean = at::zeros_like(weight), unused_var = at::ones_like(weight);
  const auto [own_mean, own_var] = at::batch_norm_update_stats(images, unused_mean, unused_var, 0.0);
  const std::int64_t channels = images.size(1);
  const auto own_count = static_cast<double>(images.numel() / channels);
  const at::Tensor m = own_mean.to(at::kDouble), v = own_var.to(at::kDouble);
  at::Tensor all = at::cat({m * own_count, (v + m * m) * own_count, at::full({1}, own_count, m.options())});
  sum(all);
  const at::Tensor count = all[2 * channels];
  const at::Tensor mean = all.narrow(0, 0, channels) / count;
  return {count, mean, (all.narrow(0, channels, channels) / count - mean * mean).clamp_min(0)};
}

void keep_running(NormImpl& norm, const RankStatistics& s) {
  const double momentum = norm.options.momentum().value();
  norm.num_batches_tracked.add_(1);
  norm.running_mean.mul_(1 - momentum).add_(s.mean, momentum);
  norm.running_var.mul_(1 - momentum).add_(s.var * (s.count / (s.count - 1)), momentum);
}

struct Gradients {
  at::Tensor images, weight, bias;
};

struct Saved {
  at::Tensor images, weight, mean, inverse, count;
};

Gradients differentiate_cuda(const at::Tensor& gradient, const Saved& s, const SumOverRanks& sum) {
  const auto [plain, weighted, weight, bias] =
      at::batch_norm_backward_reduce(gradient, s.images, s.mean, s.inverse, s.weight, true, true, true);
  at::Tensor all = at::stack({plain, weighted});
  sum(all);
  return {at::batch_norm_backward_elemt(gradient, s.images, s.mean, s.inverse, s.weight, all[0], all[1],
                                        s.count.to(at::kInt).view({1})),
          weight, bias};
}

Gradients differentiate(const at::Tensor& gradient, const Saved& s, const SumOverRanks& sum) {
  if (gradient.is_cuda()) return differentiate_cuda(gradient, s, sum);
  const at::ScalarType type = s.weight.scalar_type();
  const auto by_channel = [&](const at::Tensor& t) { return t.to(type).view({1, -1, 1, 1}); };
  const at::Tensor slope = gradient.to(type);
  const at::Tensor distance = s.images.to(type) - by_channel(s.mean);
  const at::Tensor plain = slope.sum({0, 2, 3}), weighted = (slope * distance).sum({0, 2, 3});
  at::Tensor all = at::stack({plain, weighted}).to(at::kDouble);
  sum(all);
  const at::Tensor average = all[0] / s.count, covariant = all[1] / s.count * s.inverse * s.inverse;
  at::Tensor images = slope - by_channel(average);
  images.sub_(distance.mul_(by_channel(covariant))).mul_(by_channel(s.weight * s.inverse));
  return {images.to(s.images.scalar_type()), weighted * s.inverse, plain};
}

// Gradients of weight and bias are those of this rank's part of the loss, as all others are.
struct SyncNorm : torch::autograd::Function<SyncNorm> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& images,
                            const at::Tensor& weight, const at::Tensor& bias, NormImpl* norm) {
    const RankStatistics s = measure(images, weight, *norm->sum);
    if (!recomputing()) keep_running(*norm, s);
    const double eps = norm->options.eps();
    const at::Tensor mean = s.mean.to(weight.scalar_type()), var = s.var.to(weight.scalar_type());
    const at::Tensor inverse = (s.var + eps).rsqrt().to(weight.scalar_type());
    context->save_for_backward({images, weight, mean, inverse, s.count});
    context->saved_data["sum"] = c10::IValue::make_capsule(c10::make_intrusive<HeldSum>(norm->sum));
    return std::get<0>(at::native_batch_norm(images, weight, bias, mean, var, false, 0.0, eps));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto held = context->saved_data["sum"].toCapsule();
    const auto& sum = *static_cast<const HeldSum&>(*held).sum;
    const auto memory = saved[0].suggest_memory_format();
    const Gradients g = differentiate(gradients[0].contiguous(memory),
                                      {saved[0], saved[1], saved[2], saved[3], saved[4]}, sum);
    return {g.images, g.weight, g.bias, {}};
  }
};

bool is_synchronised(const Norm& norm) { return norm->sum && norm->is_training(); }

torch::nn::BatchNorm2d plain(const Norm& norm) {
  return torch::nn::BatchNorm2d(std::static_pointer_cast<torch::nn::BatchNorm2dImpl>(norm.ptr()));
}

}  // namespace

void synchronise_norms(torch::nn::Module& network, SumOverRanks sum) {
  const auto shared = std::make_shared<const SumOverRanks>(std::move(sum));
  for (const auto& module : network.modules(/*include_self=*/false))
    if (auto* norm = module->as<NormImpl>()) norm->sum = shared;
}

at::Tensor normalise(Norm& norm, const at::Tensor& images) {
  if (is_synchronised(norm)) return SyncNorm::apply(images, norm->weight, norm->bias, norm.get());
  auto alone = plain(norm);
  return normalise(alone, images);
}

at::Tensor normalise_relu(Norm& norm, const at::Tensor& images) {
  if (is_synchronised(norm)) return normalise(norm, images).relu_();
  auto alone = plain(norm);
  return normalise_relu(alone, images);
}

at::Tensor normalise_add_relu(Norm& norm, const at::Tensor& images, const at::Tensor& other) {
  if (is_synchronised(norm)) return (normalise(norm, images) += other).relu_();
  auto alone = plain(norm);
  return normalise_add_relu(alone, images, other);
}

}  // namespace sluice
