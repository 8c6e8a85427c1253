#include "run/train/trainer.hpp"

#include "base/printable.hpp"
#include "run/config/step_options.hpp"

namespace sluice {
namespace {

BadImages open_bad_images(const RunFacts& facts, const StartPoint& start) {
  BadImages bad(facts.folder / quarantine_name(facts.seat.rank), facts.config.data.max_bad);
  if (start.position) bad.resume(start.position->bad);
  return bad;
}

}  // namespace

Trainer::Trainer(TrainerOptions options, Log& log)
    : facts_(std::move(options.facts)),
      start_(std::move(options.start)),
      make_network_(std::move(options.network)),
      log_(log),
      schedule_(schedule_options(facts_.config, facts_.seat.world)),
      mix_(mix_options(facts_.config)),
      keeper_(facts_.folder / "checkpoints", static_cast<std::size_t>(facts_.config.checkpoint.keep),
              facts_.config.checkpoint.monitor, [&log] { return log.sync(std::chrono::seconds(20)); }),
      recorder_({.speaks = facts_.seat.first(),
                 .records = start_.position ? start_.position->records : 0,
                 .accumulate = facts_.sequence.shape().accumulate,
                 .figures = task_of(facts_.config).figures},
                log),
      agreement_({.sequence = facts_.sequence,
                  .exchange = std::move(options.exchange),
                  .signal = std::move(options.signal),
                  .save_wished = [this] { return facts_.seat.first() && clock_wants_to_save(); }},
                 open_bad_images(facts_, start_)) {
  if (start_.position) {
    at_ = *start_.position;
    if (at_.monitor == keeper_.monitor()) keeper_.resume(at_.best);  // other scores mean nothing
  }
  at_.monitor = keeper_.monitor();
  at_.config = facts_.config_text;
  at_.shape = shape_of(facts_);
}

void Trainer::connect(NodeStats& log_stats, Stop& stop, std::function<std::size_t()> ledger_peak) {
  recorder_.sources().log_stats = &log_stats;
  recorder_.sources().ledger_peak = std::move(ledger_peak);
  stop_ = &stop;
}

Status Trainer::begin() {
  Result<Network> network = make_network_([this](const std::string& line) { recorder_.tell(line); });
  if (!network) return network.error();
  if (start_.weights) {
    const Result<bool> anew = network->start_from(*start_.weights);
    if (!anew) return anew.error();
    recorder_.tell("starting from " + printable(start_.weights->source) +
                   (*anew ? ", with a new classifier for this run's classes" : ""));
    start_.weights.reset();
  }
  if (start_.resume) {
    if (Status restored = network->restore(*start_.resume); !restored) return restored;
    start_.resume.reset();
  }
  const bool others_have_older = start_.position.has_value() || !facts_.config.model.weights.empty();
  if (!agreement_.alone() && others_have_older)
    if (Status shared = network->share(); !shared) return shared;
  network_ = std::move(*network);
  return Done{};
}

Status Trainer::step(std::uint64_t number, OnDevice& batch, Nanoseconds waited) {
  const BatchPlan plan = facts_.sequence.at(number);
  recorder_.batch_came(plan, waited);
  const bool training = plan.split == Split::train;
  if (training && plan.in_phase == 0) at_.epoch_sums = at_.since_record = {};
  Status noted = note(plan, batch.bad);
  failed_ = !noted;
  if (!noted || agreement_.stop_signal() != 0) {
    agreement_.forget();
    if (agreement_.stop_signal() != 0) {
      stopped_early_ = true;
      stop_->request();
    }
    return noted;
  }
  recorder_.batch_taken(static_cast<std::uint64_t>(batch.batch.count) * facts_.sequence.shape().ranks);
  Status done = training ? train(plan, std::move(batch.batch)) : validate(plan, std::move(batch.batch));
  failed_ = !done;
  last_batch_ = done && number + 1 == facts_.sequence.batches();
  return done;
}

// Lists and counts the batch's bad images, and with other ranks finds out whether to go on.
Status Trainer::note(const BatchPlan& plan, const std::vector<Bad>& bad) {
  if (Status met = agreement_.meet(plan, bad); !met) return met;
  if (agreement_.stop_signal() != 0) return Done{};
  recorder_.bad_images(bad);
  return agreement_.list(plan, bad);
}

std::int64_t Trainer::epoch() const {
  return at_.step == 0 ? 0 : static_cast<std::int64_t>((at_.step - 1) / facts_.sequence.steps_per_epoch());
}

}  // namespace sluice
