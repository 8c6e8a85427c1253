#include "nodes/sampler.hpp"

#include <algorithm>

#include "graph/figures/nodes.hpp"

namespace sluice {
namespace {

// How many of n things the rank gets when each gets equally many, or one more.
std::uint64_t share(std::uint64_t n, std::uint32_t rank, std::uint32_t ranks) {
  return n / ranks + (rank < n % ranks ? 1 : 0);
}

std::uint64_t batches_of(std::uint64_t images, std::uint32_t batch) { return (images + batch - 1) / batch; }

}  // namespace

Result<Sequence> Sequence::make(const RunShape& shape) {
  if (shape.train_images < shape.global_batch() * shape.accumulate)
    return Error{
        name_of(NodeId::sampler),
        "train.batch = " + std::to_string(shape.batch) +
            (shape.accumulate > 1 ? ", train.accumulate = " + std::to_string(shape.accumulate) : "") +
            (shape.ranks > 1 ? " on " + std::to_string(shape.ranks) + " ranks" : ""),
        "the training set has only " + std::to_string(shape.train_images) + " images, less than one " +
            (shape.accumulate > 1 ? "optimiser step" : "batch"),
        "lower train.batch"};
  if (shape.validate && shape.val_images == 0)
    return Error{name_of(NodeId::sampler), "data.val", "the validation set has no images", ""};
  if (shape.validate && shape.val_images < shape.ranks)
    return Error{name_of(NodeId::sampler), "data.val",
                 "the validation set has " + std::to_string(shape.val_images) +
                     " images, less than one for each of " + std::to_string(shape.ranks) + " ranks",
                 "use fewer ranks"};
  return Sequence(shape);
}

Sequence::Sequence(const RunShape& shape)
    : shape_(shape),
      train_(shape.train_images / (shape.global_batch() * shape.accumulate) * shape.accumulate),
      val_(shape.validate ? batches_of(val_images(), shape.batch) : 0),
      epochs_(shape.epochs),
      last_train_(train_) {
  const std::uint64_t steps = steps_per_epoch();
  if (shape.max_steps > 0 && shape.max_steps < steps * epochs_) {
    epochs_ = (shape.max_steps + steps - 1) / steps;
    last_train_ = (shape.max_steps - (epochs_ - 1) * steps) * shape.accumulate;
  }
  batches_ = epochs_ * (train_ + val_) - (train_ - last_train_);
}

std::uint64_t Sequence::val_images() const { return share(shape_.val_images, shape_.rank, shape_.ranks); }

std::uint64_t Sequence::first_val() const {
  return shape_.val_images / shape_.ranks * shape_.rank +
         std::min<std::uint64_t>(shape_.rank, shape_.val_images % shape_.ranks);
}

std::uint64_t Sequence::common_val_batches() const {
  return shape_.validate ? batches_of(shape_.val_images / shape_.ranks, shape_.batch) : 0;
}

BatchPlan Sequence::at(std::uint64_t number) const {
  BatchPlan p;
  const std::uint64_t epoch = std::min(number / (train_ + val_), epochs_ - 1);
  const std::uint64_t within = number - epoch * (train_ + val_);
  const std::uint64_t train = epoch + 1 == epochs_ ? last_train_ : train_;
  p.epoch = static_cast<std::uint32_t>(epoch);
  p.split = within < train ? Split::train : Split::val;
  p.in_phase = within < train ? within : within - train;
  p.phase_batches = within < train ? train : val_;
  p.step = epoch * steps_per_epoch() + std::min(within, train) / shape_.accumulate;
  if (p.split == Split::train) {
    p.in_step = static_cast<std::uint32_t>(within % shape_.accumulate);
    p.ends_step = p.in_step + 1 == shape_.accumulate;
  }
  const bool short_one = p.split == Split::val && p.last_of_phase();
  p.places = short_one ? static_cast<std::uint32_t>(val_images() - (val_ - 1) * shape_.batch) : shape_.batch;
  return p;
}

std::optional<std::uint64_t> Sequence::after(std::uint64_t steps, bool validated) const {
  const std::uint64_t each = steps_per_epoch();
  const std::uint64_t last = ((epochs_ - 1) * train_ + last_train_) / shape_.accumulate;
  if (steps > last) return std::nullopt;
  if (steps == last) return validated ? batches_ : batches_ - val_;
  const std::uint64_t epoch = steps / each, within = steps % each * shape_.accumulate;
  const bool before_validation = within == 0 && steps > 0 && !validated;
  return epoch * (train_ + val_) + within - (before_validation ? val_ : 0);
}

Sampler::Sampler(const Sequence& sequence, std::uint64_t first_batch)
    : sequence_(sequence), batch_(first_batch) {}

std::optional<Ticket> Sampler::next() {
  if (batch_ >= sequence_.batches()) return std::nullopt;
  if (place_ == 0) plan_ = sequence_.at(batch_);
  const RunShape& shape = sequence_.shape();
  Ticket t;
  t.split = plan_.split;
  t.epoch = plan_.epoch;
  t.batch = batch_;
  t.place = place_;
  t.places = plan_.places;
  t.index = sequence_.first_val() + plan_.in_phase * shape.batch + place_;
  if (t.split == Split::train) {
    const std::uint64_t in_order =
        plan_.in_phase * shape.global_batch() + std::uint64_t{shape.rank} * shape.batch + place_;
    if (!order_ || order_epoch_ != t.epoch) {
      order_.emplace(shape.train_images, shape.seed, t.epoch);
      order_epoch_ = t.epoch;
    }
    t.index = (*order_)(in_order);
  }
  if (++place_ == plan_.places) {
    place_ = 0;
    ++batch_;
  }
  return t;
}

}  // namespace sluice
