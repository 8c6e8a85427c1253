#include "model/train/loss.hpp"

namespace sluice {

namespace {

at::Tensor summed_loss(const at::Tensor& scores, const at::Tensor& labels, double label_smoothing) {
  return at::cross_entropy_loss(scores, labels, {}, at::Reduction::Sum, -1, label_smoothing);
}

at::Tensor partners(const at::Tensor& labels) { return labels.view({-1, 2}).flip(1).flatten(); }

void judge(BatchSums& sums, const at::Tensor& scores, const at::Tensor& labels) {
  const std::int64_t most = std::min<std::int64_t>(5, scores.size(1));
  const at::Tensor best = std::get<1>(scores.detach().topk(most, 1));
  const at::Tensor hits = best == labels.unsqueeze(1);  // never true for -1
  sums.judged = sums.count;
  sums.correct1 = hits.select(1, 0).sum();
  sums.correct5 = hits.sum();
}

}  // namespace

at::Tensor BatchSums::mean() const { return loss / count.clamp_min(1); }

BatchSums cross_entropy(const at::Tensor& logits, const at::Tensor& labels, double label_smoothing,
                        const Mix& mix) {
  const at::Tensor scores = logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
  const auto loss = [&](const at::Tensor& of) { return summed_loss(scores, of, label_smoothing); };
  const bool mixed = mix.kind != Mix::Kind::none;
  BatchSums sums;
  sums.loss = mixed ? mix.own * loss(labels) + mix.other * loss(partners(labels)) : loss(labels);
  const at::NoGradGuard no_grad;
  sums.count = (labels >= 0).sum();
  if (mixed) {
    sums.judged = sums.correct1 = sums.correct5 = at::zeros_like(sums.count);
    return sums;
  }
  judge(sums, scores, labels);
  return sums;
}

MixOnDevice::MixOnDevice(at::Device device)
    : own(at::ones({}, at::TensorOptions(device).dtype(at::kFloat))),
      other(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))),
      judged(at::ones({}, at::TensorOptions(device).dtype(at::kLong))) {}

void MixOnDevice::set(const Mix& mix) {
  const bool mixed = mix.kind != Mix::Kind::none;
  own.fill_(mixed ? mix.own : 1.0f);
  other.fill_(mixed ? mix.other : 0.0f);
  judged.fill_(mixed ? 0 : 1);
}

// Both losses in any case: what is recorded is done every time. Batches of an odd count are never mixed.
BatchSums cross_entropy(const at::Tensor& logits, const at::Tensor& labels, double label_smoothing,
                        const MixOnDevice& mix) {
  const at::Tensor scores = logits.to(at::kFloat);
  const at::Tensor others = labels.size(0) % 2 == 0 ? partners(labels) : labels;
  BatchSums sums;
  sums.loss = mix.own * summed_loss(scores, labels, label_smoothing) +
              mix.other * summed_loss(scores, others, label_smoothing);
  const at::NoGradGuard no_grad;
  sums.count = (labels >= 0).sum();
  judge(sums, scores, labels);
  for (at::Tensor* counted : {&sums.judged, &sums.correct1, &sums.correct5}) *counted = *counted * mix.judged;
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
