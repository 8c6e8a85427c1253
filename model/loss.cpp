#include "model/loss.hpp"

namespace sluice {

at::Tensor BatchSums::mean() const { return loss / count.clamp_min(1); }

BatchSums cross_entropy(const at::Tensor& logits, const at::Tensor& labels, double label_smoothing,
                        const Mix& mix) {
  const at::Tensor scores = logits.to(at::kFloat);
  const auto loss = [&](const at::Tensor& of) {
    return at::cross_entropy_loss(scores, of, {}, at::Reduction::Sum, -1, label_smoothing);
  };
  const bool mixed = mix.kind != Mix::Kind::none;
  BatchSums sums;
  sums.loss = mixed ? mix.own * loss(labels) + mix.other * loss(labels.view({-1, 2}).flip(1).flatten())
                    : loss(labels);
  const at::NoGradGuard no_grad;
  sums.count = (labels >= 0).sum();
  if (mixed) {
    sums.judged = sums.correct1 = sums.correct5 = at::zeros_like(sums.count);
    return sums;
  }
  const std::int64_t most = std::min<std::int64_t>(5, scores.size(1));
  const at::Tensor best = std::get<1>(scores.detach().topk(most, 1));
  const at::Tensor hits = best == labels.unsqueeze(1);  // never true for -1
  sums.judged = sums.count;
  sums.correct1 = hits.select(1, 0).sum();
  sums.correct5 = hits.sum();
  return sums;
}

Running::Running(at::Device device)
    : values_(at::zeros({width}, at::TensorOptions(device).dtype(at::kDouble))) {}

void Running::add(const BatchSums& batch) {
  const at::NoGradGuard no_grad;
  const at::Tensor loss = batch.loss.detach().to(at::kDouble);
  const at::Tensor finite = at::isfinite(loss);
  at::Tensor sums = at::stack({loss, batch.count.to(at::kDouble), batch.judged.to(at::kDouble),
                               batch.correct1.to(at::kDouble), batch.correct5.to(at::kDouble)});
  sums = at::where(finite, sums, at::zeros_like(sums));
  const at::Tensor bad = at::logical_not(finite).to(at::kDouble);
  values_.add_(at::cat({sums, at::stack({at::ones_like(bad), bad})}));
}

}  // namespace sluice
