#include "run/train/trainer.hpp"

#include "base/printable.hpp"
#include "base/thread_limit.hpp"
#include "run/config/step_options.hpp"
#include "run/train/resume_state.hpp"

namespace sluice {
namespace {

using nlohmann::json;

void add(PhaseSums& to, const PhaseSums& more) {
  to.loss += more.loss;
  to.count += more.count;
  to.judged += more.judged;
  to.correct1 += more.correct1;
  to.correct5 += more.correct5;
  to.batches += more.batches;
}

json to_json(const PhaseSums& s) {
  return {{"loss", s.loss},         {"count", s.count},       {"judged", s.judged},
          {"correct1", s.correct1}, {"correct5", s.correct5}, {"batches", s.batches}};
}

Error not_finite(std::uint64_t step, double lr) {
  char text[120];
  std::snprintf(text, sizeof text, "is not finite by step %llu, at learning rate %g",
                static_cast<unsigned long long>(step), lr);
  return {"step", "train/loss", text, "lower optim.lr or lengthen schedule.warmup_epochs"};
}

}  // namespace

json shape_of(const TrainerOptions& o) {
  const RunShape& s = o.sequence.shape();
  json shape{{"arch", o.config.model.arch},
             {"classes", o.classes},
             {"train_images", s.train_images},
             {"val_images", s.val_images},
             {"batch", s.global_batch()},
             {"accumulate", s.accumulate},
             {"seed", s.seed}};
  for (const auto& [key, value] : task_of(o.config).facts) shape[key] = value;
  return shape;
}

Result<std::uint64_t> first_batch(const TrainerOptions& o) {
  if (!o.resume) return std::uint64_t{0};
  const Result<ResumeState> state = resume_state(*o.resume);
  if (!state) return state.error();
  const json now = shape_of(o);
  for (const auto& [key, value] : now.items()) {
    const json then = state->shape.value(key, json());
    if (then != value)
      return Error{"resume", o.resume->source, key + " was " + then.dump() + " and is now " + value.dump(),
                   "a run can only go on with the same network, data, batch (of all ranks), image size and "
                   "seed"};
  }
  const std::optional<std::uint64_t> at = o.sequence.after(state->step, state->validated);
  if (!at)
    return Error{"resume", o.resume->source,
                 "stands at step " + std::to_string(state->step) + ", past the end of this run",
                 "raise train.epochs or train.max_steps"};
  return *at;
}

Trainer::Trainer(TrainerOptions options, Log& log)
    : o_(std::move(options)),
      log_(log),
      schedule_(schedule_options(o_.config, o_.place.world)),
      mix_(mix_options(o_.config)),
      keeper_(o_.folder / "checkpoints", static_cast<std::size_t>(o_.config.checkpoint.keep),
              o_.config.checkpoint.monitor, [&log] { return log.sync(std::chrono::seconds(20)); }),
      bad_(o_.folder / quarantine_name(o_.place.rank), o_.config.data.max_bad),
      records_(o_.records) {
  if (!o_.resume) return;
  const Result<ResumeState> state = resume_state(*o_.resume);  // first_batch has looked at it before
  steps_ = state->step;
  validated_ = state->validated;
  epoch_sums_ = state->epoch_sums;
  since_record_ = state->since_record;
  bad_.resume(state->bad);
  settled_bad_ = bad_.state();
  if (state->monitor == keeper_.monitor()) keeper_.resume(state->best);  // other scores mean nothing
}

void Trainer::connect(NodeStats& log_stats, Stop& stop, std::function<std::size_t()> ledger_peak) {
  log_stats_ = &log_stats;
  stop_ = &stop;
  ledger_peak_ = std::move(ledger_peak);
}

Status Trainer::begin() {
  StepOptions options = step_options(o_.config, o_.classes, o_.device, o_.torch_threads);
  options.ranks = o_.ranks;
  options.device_index = o_.place.local_rank;
  options.note = [this](const std::string& line) { tell(line); };
  Result<Step> step = Step::create(options);
  if (!step) return step.error();
  if (o_.weights) {
    const Result<bool> anew = step->start_from(*o_.weights);
    if (!anew) return anew.error();
    tell("starting from " + printable(o_.weights->source) +
         (*anew ? ", with a new classifier for this run's classes" : ""));
    o_.weights.reset();
  }
  const bool from_others = o_.resume.has_value() || !o_.config.model.weights.empty();
  if (o_.resume && o_.place.first()) {
    if (Status restored = step->restore(*o_.resume); !restored) return restored;
    o_.resume.reset();
  }
  if (o_.ranks && from_others)
    if (Status shared = step->share(); !shared) return shared;
  step_.emplace(std::move(*step));
  return Done{};
}

Status Trainer::step(Batch& batch) {
  ++begun_;
  const struct Busy {
    std::atomic<bool>& flag;
    explicit Busy(std::atomic<bool>& f) : flag(f) { flag = true; }
    ~Busy() { flag = false; }
  } busy(busy_);
  const BatchPlan plan = o_.sequence.at(batch.number);
  OnDevice& on_device = DeviceFeed::of(batch);
  if (plan.in_phase == 0 || !phase_.started()) phase_.start();
  phase_.waited(batch.waited);
  const bool training = plan.split == Split::train;
  if (training && plan.in_phase == 0) epoch_sums_ = since_record_ = {};
  Status noted = note(plan, on_device.bad);
  if (!noted || stop_signal_ != 0) {
    on_device.batch.release();
    told_.reset();
    if (stop_signal_ != 0) {
      stopped_early_ = true;
      stop_->request();
    }
    return noted;
  }
  phase_.images(static_cast<std::uint64_t>(on_device.batch.count) * o_.sequence.shape().ranks);
  Status done =
      training ? train(plan, std::move(on_device.batch)) : validate(plan, std::move(on_device.batch));
  last_batch_ = done && batch.number + 1 == o_.sequence.batches();
  return done;
}

Status Trainer::over() {
  Status saved = Done{};
  try {
    saved = finish();
  } catch (const std::exception& error) {
    saved = Error{"checkpoint", (o_.folder / "checkpoints" / "last.ckpt").string(), as_error("", error).cause,
                  ""};
  }
  step_.reset();
  return saved;
}

// A write that failed earlier is tried again: the disk may have room by now. Without the others, the figures
// since the last record are lost. On a GPU the last steps may still be queued when a rank is lost, and would
// be finished with gradients of fewer ranks: there the last checkpoint is the one before.
Status Trainer::finish() {
  Status saved = keeper_.wait();
  const bool surely_finished = o_.device == "cpu" || together();
  if (step_ && sound_ && surely_finished && (unsaved_ || (!saved && steps_ > 0))) {
    saved = save(together() && (unsaved_ || !o_.ranks));
    if (!saved && o_.ranks && sound_ && unsaved_) saved = save(false);  // one was lost just now
    if (Status written = keeper_.wait(); saved) saved = std::move(written);
  }
  if (saved && saved_here_) saved = keeper_.still_there();
  if (saved && saved_here_) saved = log_.sync(std::chrono::seconds(20));
  if (saved && saved_here_) tell("saved " + printable((o_.folder / "checkpoints" / "last.ckpt").string()));
  return saved;
}

std::int64_t Trainer::epoch() const {
  return steps_ == 0 ? 0 : static_cast<std::int64_t>((steps_ - 1) / o_.sequence.steps_per_epoch());
}

void Trainer::tell(std::string text) {
  if (o_.place.first()) log_.message(Level::info, std::move(text));
}

void Trainer::warn(std::string text) {
  if (o_.place.first()) log_.message(Level::warning, std::move(text));
}

void Trainer::put(Record record) {
  if (!o_.place.first()) return;
  const auto before = log_.waited();
  log_.put(std::move(record));
  ++records_;
  if (log_stats_) log_stats_->waited_for_bound((log_.waited() - before).count());
}

Status Trainer::train(const BatchPlan& plan, DeviceBatch&& batch) {
  const RunShape& shape = o_.sequence.shape();
  const auto per_epoch = static_cast<std::int64_t>(o_.sequence.steps_per_epoch());
  const double lr = learning_rate(schedule_, plan.epoch,
                                  static_cast<std::int64_t>(plan.step) - plan.epoch * per_epoch, per_epoch);
  const Mix mix =
      choose_mix(mix_, shape.seed, plan.step * shape.accumulate + plan.in_step, batch.sample.width());
  sound_ = false;
  const bool record =
      plan.ends_step &&
      (plan.last_of_phase() || (plan.step + 1) % static_cast<std::uint64_t>(o_.config.log.every) == 0);
  TrainStep how(lr, plan.step, mix);
  how.read_back = record;
  if (Status done = step_->train(std::move(batch), how); !done) {
    sound_ = o_.ranks && step_->intact();  // the others' failure may have left this rank's weights alone
    return done;
  }
  sound_ = true;
  if (!plan.ends_step) {
    report(plan);
    return Done{};
  }
  unsaved_ = true;
  steps_ = plan.step + 1;
  validated_ = false;
  monitored_.reset();
  settled_bad_ = bad_.state();
  if (record) {
    if (Status read = read_back(lr); !read) return read;
    record_training(plan.epoch, lr);
  }
  report(plan);
  if (plan.last_of_phase()) train_figures_ = phase_.whole();
  return time_to_save() ? save(true) : Status(Done{});
}

void Trainer::record_training(std::int64_t epoch, double lr) {
  Record record{"train", epoch, steps(), task_of(o_.config).figures("train/", since_record_), {}};
  const Interval::Figures f = phase_.since_last();
  shown_.clear();
  if (since_record_.count > 0) shown_.push_back(record.values[0]);
  shown_.insert(shown_.end(), {{"train/lr", lr}, {"img/s", f.images_per_s}});
  record.values.insert(record.values.end(), {{"train/lr", lr},
                                             {"step_ms", f.step_ms * o_.sequence.shape().accumulate},
                                             {"images_per_s", f.images_per_s},
                                             {"data_wait", f.data_wait}});
  for (const auto& [name, value] : gpu_()) {
    record.values.emplace_back(name, value);
    name == "gpu_util" ? shown_.emplace_back("gpu %", value) : shown_.emplace_back("gpu GiB", value / 0x1p30);
  }
  since_record_ = {};
  put(std::move(record));
}

bool Trainer::time_to_save() const {
  const auto every = static_cast<std::uint64_t>(o_.config.checkpoint.every_steps);
  const double minutes = o_.config.checkpoint.every_minutes;
  if (every > 0 && steps_ % every == 0) return true;
  if (o_.ranks) return save_due_;  // clocks differ: rank 0's has told
  return minutes > 0 && static_cast<double>(now_ns() - saved_at_) >= minutes * 60e9;
}

Status Trainer::validate(const BatchPlan& plan, DeviceBatch&& batch) {
  if (Status done = step_->eval(std::move(batch)); !done) return done;
  report(plan);
  if (!plan.last_of_phase()) return Done{};
  Result<StepSums> sums = step_->read_back();
  if (!sums) return sums.error();
  if (sums->eval.not_finite > 0 || sums->ema.not_finite > 0) {
    sound_ = false;
    return Error{"step", "val/loss", "is not finite after epoch " + std::to_string(plan.epoch),
                 "lower optim.lr"};
  }
  Record record{"val", plan.epoch, steps(), task_of(o_.config).figures("val/", sums->eval), {}};
  for (auto& value : sums->ema.count > 0 ? task_of(o_.config).figures("val/ema_", sums->ema) : Values())
    record.values.push_back(std::move(value));
  if (sums->eval.count == 0)
    warn("validation of epoch " + std::to_string(plan.epoch) +
         ": no image could be used; it has no metrics and is not among the best");
  Values summary = task_of(o_.config).figures("train/", epoch_sums_);
  summary.insert(summary.end(), record.values.begin(), record.values.end());
  const Interval::Figures f = phase_.whole();
  record.values.insert(record.values.end(), {{"images_per_s", f.images_per_s},
                                             {"data_wait", f.data_wait},
                                             {"peak_ledger_bytes", static_cast<double>(ledger_peak_())}});
  for (const auto& [name, value] : summary)
    if (name == keeper_.monitor()) monitored_ = value;
  const std::string diagnosis = diagnosis_();
  record.texts = {{"diagnosis", diagnosis}};
  put(std::move(record));
  tell(summary_line(plan.epoch, summary, train_figures_.seconds + phase_.whole().seconds,
                    train_figures_.images_per_s));
  tell(diagnosis);
  shown_.clear();
  epoch_sums_ = {};
  validated_ = unsaved_ = true;
  settled_bad_ = bad_.state();
  return save(true);
}

// The sums of the steps since the last time; a loss that is not finite ends the run, and nothing is saved
// over.
Status Trainer::read_back(double lr) {
  Result<StepSums> sums = step_->read_back();
  if (!sums) return sums.error();
  if (!sums->finite) {
    sound_ = false;
    return not_finite(steps_, lr);
  }
  add(since_record_, sums->train);
  add(epoch_sums_, sums->train);
  return Done{};
}

void Trainer::report(const BatchPlan& plan) {
  if (!o_.place.first()) return;
  const Interval::Figures figures = phase_.whole();
  const std::string epoch = "poch " + std::to_string(plan.epoch);
  const auto done = static_cast<std::int64_t>(plan.in_phase + 1);
  Progress p{"E" + epoch,
             "e" + epoch,
             done,
             static_cast<std::int64_t>(plan.phase_batches),
             done - static_cast<std::int64_t>(figures.batches),
             figures.seconds,
             shown_};
  if (plan.split == Split::val) {
    p.label = "Validation";
    p.plain = "e" + epoch + " validation";
    p.values = {{"img/s", figures.images_per_s}};
  }
  plan.last_of_phase() ? log_.finish(std::move(p)) : log_.progress(std::move(p));
}

json Trainer::state(const std::vector<Keeper::Best>& best) const {
  json state = {{"step", steps_},
                {"validated", validated_},
                {"epoch", epoch()},
                {"records", records_},
                {"epoch_sums", to_json(epoch_sums_)},
                {"since_record", to_json(since_record_)},
                {"bad", settled_bad_},
                {"monitor", keeper_.monitor()},
                {"shape", shape_of(o_)},
                {"config", o_.config_text},
                {"best", json::array()}};
  for (const Keeper::Best& b : best) state["best"].push_back({{"score", b.score}, {"file", b.file}});
  return state;
}

// `together`: the other ranks are here as well.
Status Trainer::save(bool together) {
  if (together)
    if (Status settled = settle(); !settled) return settled;
  save_due_ = false;
  saved_at_ = now_ns();
  if (!o_.place.first()) {
    unsaved_ = false;
    return Done{};
  }
  Status saved = keeper_.save(
      [&](Snapshot& s, const std::vector<Keeper::Best>& best) {
        s.state = state(best);
        return step_->snapshot(s);
      },
      epoch(), monitored_ ? &*monitored_ : nullptr);
  if (saved) unsaved_ = false, saved_here_ = true;
  return saved;
}

}  // namespace sluice
