// The part of the trainer that has to do with the network: what a batch of training and one of validation
// does, and what is read back.
#include <fmt/core.h>

#include "graph/figures/nodes.hpp"
#include "run/train/trainer.hpp"

namespace sluice {
namespace {

void add(PhaseSums& to, const PhaseSums& more) {
  to.loss += more.loss;
  to.count += more.count;
  to.judged += more.judged;
  to.correct1 += more.correct1;
  to.correct5 += more.correct5;
  to.batches += more.batches;
}

Error not_finite(std::uint64_t step, double lr) {
  return {name_of(NodeId::step), "train/loss",
          fmt::format("is not finite by step {}, at learning rate {:g}", step, lr),
          "lower optim.lr or lengthen schedule.warmup_epochs"};
}

}  // namespace

Status Trainer::train(const BatchPlan& plan, DeviceBatch&& batch) {
  const RunShape& shape = facts_.sequence.shape();
  const auto per_epoch = static_cast<std::int64_t>(facts_.sequence.steps_per_epoch());
  TrainStep how(
      learning_rate(schedule_, plan.epoch, static_cast<std::int64_t>(plan.step) - plan.epoch * per_epoch,
                    per_epoch),
      plan.step,
      choose_mix(mix_, shape.seed, plan.step * shape.accumulate + plan.in_step, batch.sample.width()));
  how.read_back =
      plan.ends_step &&
      (plan.last_of_phase() || (plan.step + 1) % static_cast<std::uint64_t>(facts_.config.log.every) == 0);
  sound_ = false;
  if (Status done = network_->train(std::move(batch), how); !done) {
    // The others' failure may have left this rank's weights alone.
    sound_ = !agreement_.alone() && network_->intact();
    return done;
  }
  sound_ = true;
  if (!plan.ends_step) {
    recorder_.batch_done(plan);
    return Done{};
  }
  unsaved_ = true;
  at_.step = plan.step + 1;
  at_.validated = false;
  lr_ = how.lr;
  monitored_.reset();
  agreement_.reach();
  if (how.read_back) {
    if (Status read = read_back(); !read) return read;
    recorder_.training(plan.epoch, steps(), at_.since_record, lr_);
    at_.since_record = {};
  }
  recorder_.batch_done(plan);
  return time_to_save() ? save(true) : Status(Done{});
}

Status Trainer::validate(const BatchPlan& plan, DeviceBatch&& batch) {
  if (Status done = network_->eval(std::move(batch)); !done) return done;
  recorder_.batch_done(plan);
  if (!plan.last_of_phase()) return Done{};
  const Result<StepSums> sums = network_->read_back();
  if (!sums) return sums.error();
  if (sums->eval.not_finite > 0 || sums->ema.not_finite > 0) {
    sound_ = false;
    return Error{name_of(NodeId::step), "val/loss", "is not finite after epoch " + std::to_string(plan.epoch),
                 "lower optim.lr"};
  }
  for (const auto& [name, value] : recorder_.validation(plan.epoch, steps(), at_.epoch_sums, *sums))
    if (name == keeper_.monitor()) monitored_ = value;
  at_.epoch_sums = {};
  at_.validated = unsaved_ = true;
  agreement_.reach();
  return save(true);
}

// The sums of the steps since the last time; a loss that is not finite ends the run, and nothing is saved
// over.
Status Trainer::read_back() {
  const Result<StepSums> sums = network_->read_back();
  if (!sums) return sums.error();
  if (!sums->finite) {
    sound_ = false;
    return not_finite(at_.step, lr_);
  }
  add(at_.since_record, sums->train);
  add(at_.epoch_sums, sums->train);
  return Done{};
}

}  // namespace sluice
