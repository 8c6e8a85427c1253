#include "cli/trainer.hpp"

#include <chrono>

#include "cli/bad_images.hpp"
#include "cli/interval.hpp"
#include "model/schedule.hpp"

namespace sluice {
namespace {

using nlohmann::json;

// What upload makes of a batch.
struct OnDevice {
  DeviceBatch batch;
  std::vector<Bad> bad;
};

void add(PhaseSums& to, const PhaseSums& more) {
  to.loss += more.loss;
  to.count += more.count;
  to.correct1 += more.correct1;
  to.correct5 += more.correct5;
  to.batches += more.batches;
}

json to_json(const PhaseSums& s) {
  return {{"loss", s.loss}, {"count", s.count}, {"correct1", s.correct1}, {"correct5", s.correct5}, {"batches", s.batches}};
}

PhaseSums sums_from(const json& j) {
  PhaseSums s;
  s.loss = j.at("loss");
  s.count = j.at("count");
  s.correct1 = j.at("correct1");
  s.correct5 = j.at("correct5");
  s.batches = j.at("batches");
  return s;
}

double mean(double sum, std::int64_t count) { return count > 0 ? sum / static_cast<double>(count) : 0; }
double percent(std::int64_t part, std::int64_t count) { return 100 * mean(static_cast<double>(part), count); }

Values metrics(const std::string& phase, const PhaseSums& s) {
  return {{phase + "/loss", mean(s.loss, s.count)},
          {phase + "/acc1", percent(s.correct1, s.count)},
          {phase + "/acc5", percent(s.correct5, s.count)}};
}

// What must be the same for a position to mean the same.
json shape_of(const TrainerOptions& o) {
  const RunShape& s = o.sequence.shape();
  return {{"train_images", s.train_images}, {"val_images", s.val_images}, {"batch", s.batch}, {"seed", s.seed},
          {"image_size", o.config.data.image_size}};
}

}  // namespace

class Trainer::Impl {
 public:
  Impl(TrainerOptions o, Log& log)
      : o_(std::move(o)),
        log_(log),
        keeper_(o_.folder / "checkpoints", static_cast<std::size_t>(o_.config.checkpoint.keep), o_.config.checkpoint.monitor),
        bad_(o_.folder / "quarantine.jsonl", o_.config.data.max_bad) {
    const Config& c = o_.config;
    schedule_ = {c.schedule.kind, c.schedule.interval, c.optim.lr, c.train.batch, c.optim.base_batch, c.train.epochs,
                 c.schedule.warmup_epochs, c.schedule.warmup_start};
    if (!o_.resume) return;
    const json& s = o_.resume->state;
    next_batch_ = s.at("next_batch");
    steps_ = s.at("step");
    records_ = s.at("records");
    epoch_sums_ = sums_from(s.at("epoch_sums"));
    since_record_ = sums_from(s.at("since_record"));
    bad_.resume(s.at("bad"));
    std::vector<Keeper::Best> best;
    for (const json& b : s.at("best")) best.push_back({b.at("score"), b.at("file")});
    keeper_.resume(std::move(best));
  }

  ~Impl() {
    for (Slot* slot : pinned_) unpin(o_.device, slot->memory().data());
  }

  Status prepare_upload(const std::vector<Slot*>& slots) {
    for (Slot* slot : slots) {
      if (Status done = pin(o_.device, slot->memory().data(), slot->memory().size()); !done) return done;
      pinned_.push_back(slot);
    }
    Result<Upload> upload = Upload::create({o_.device, static_cast<int>(o_.config.train.batch),
                                            static_cast<int>(o_.config.data.image_size), 3});
    if (!upload) return upload.error();
    upload_.emplace(std::move(*upload));
    return Done{};
  }

  Status upload(Batch& batch) {
    auto on_device = std::make_shared<OnDevice>();
    on_device->bad = batch.slot->take_bad();
    const Slot& slot = *batch.slot.get();
    HostBatch host{slot.place(0).data(), slot.labels().data(), static_cast<int>(slot.places()),
                   static_cast<int>(o_.config.data.image_size), o_.sequence.at(batch.number).split == Split::train, nullptr};
    host.release = [lease = std::make_shared<SlotLease>(std::move(batch.slot))] { lease->release(); };
    Result<DeviceBatch> put = upload_->put(std::move(host));
    if (!put) return put.error();
    on_device->batch = std::move(*put);
    batch.device = std::move(on_device);
    return Done{};
  }

  Status begin() {
    const Config& c = o_.config;
    StepOptions s;
    s.arch = c.model.arch;
    s.classes = o_.classes;
    s.device = o_.device;
    s.precision = c.model.precision;
    s.channels_last = c.model.channels_last;
    s.label_smoothing = c.train.label_smoothing;
    s.momentum = c.optim.momentum;
    s.weight_decay = c.optim.weight_decay;
    s.nesterov = c.optim.nesterov;
    s.threads = static_cast<int>(o_.torch_threads);
    s.seed = static_cast<std::uint64_t>(c.train.seed);
    s.batch = static_cast<int>(c.train.batch);
    s.image_size = static_cast<int>(c.data.image_size);
    Result<Step> step = Step::create(s);
    if (!step) return step.error();
    step_.emplace(std::move(*step));
    if (o_.resume) {
      if (Status restored = step_->restore(*o_.resume); !restored) return restored;
      o_.resume.reset();
    }
    return Done{};
  }

  Status step(Batch& batch) {
    const BatchPlan plan = o_.sequence.at(batch.number);
    const auto on_device = std::static_pointer_cast<OnDevice>(batch.device);
    if (plan.in_phase == 0 || !phase_.started()) phase_.start();
    phase_.waited(batch.waited);
    if (plan.split == Split::train && plan.in_phase == 0) epoch_sums_ = since_record_ = {};
    const std::uint64_t images = plan.split == Split::train ? o_.sequence.shape().train_images : o_.sequence.shape().val_images;
    if (Status noted = bad_.note(plan, images, on_device->bad); !noted) return noted;
    for (const Bad& b : on_device->bad)
      log_.message(Level::warning, b.file + ": " + b.cause + (b.replacement.empty() ? "; left out" : "; replaced"));
    return plan.split == Split::train ? train(plan, std::move(on_device->batch), batch.number)
                                      : validate(plan, std::move(on_device->batch), batch.number);
  }

  void over(bool healthy) {
    if (step_ && healthy && next_batch_ != saved_batch_)
      if (Status saved = save(nullptr); !saved) log_.message(Level::error, saved.error().text());
    if (Status written = keeper_.wait(); !written) log_.message(Level::error, written.error().text());
    else if (saved_batch_) log_.message(Level::info, "saved " + (o_.folder / "checkpoints" / "last.ckpt").string());
    step_.reset();
  }

  void cancel_upload() {
    if (upload_) upload_->stop();
  }

  [[nodiscard]] std::int64_t epoch() const { return o_.sequence.at(next_batch_ > 0 ? next_batch_ - 1 : 0).epoch; }
  [[nodiscard]] std::int64_t steps() const { return static_cast<std::int64_t>(steps_); }

  TrainerOptions o_;

 private:
  double rate(const BatchPlan& plan) const {
    return learning_rate(schedule_, plan.epoch, static_cast<std::int64_t>(plan.step - plan.epoch * o_.sequence.steps_per_epoch()),
                         static_cast<std::int64_t>(o_.sequence.steps_per_epoch()));
  }

  void put(Record record) {
    const auto before = log_.waited();
    log_.put(std::move(record));
    ++records_;
    if (o_.log_stats) o_.log_stats->waited_for_bound((log_.waited() - before).count());
  }

  Status train(const BatchPlan& plan, DeviceBatch&& batch, std::uint64_t number) {
    const double lr = rate(plan);
    const auto count = static_cast<std::uint64_t>(batch.count);
    if (Status done = step_->train(std::move(batch), lr); !done) return done;
    phase_.images(count);
    steps_ = plan.step + 1;
    next_batch_ = number + 1;
    const bool last = plan.last_of_phase();
    if (steps_ % static_cast<std::uint64_t>(o_.config.log.every) == 0 || last) {
      if (Status read = read_back(plan, lr); !read) return read;
      Record record{"train", plan.epoch, static_cast<std::int64_t>(steps_), metrics("train", since_record_), {}};
      const Interval::Figures f = phase_.since_last();
      record.values.insert(record.values.end(), {{"train/lr", lr}, {"step_ms", f.step_ms}, {"images_per_s", f.images_per_s}, {"data_wait", f.data_wait}});
      shown_ = {{"train/loss", record.values[0].second}, {"train/lr", lr}, {"img/s", f.images_per_s}};
      since_record_ = {};
      put(std::move(record));
    } else if (!shown_.empty() && shown_.size() > 1) {
      shown_[1].second = lr;
    }
    report(plan, "Epoch " + std::to_string(plan.epoch), "epoch " + std::to_string(plan.epoch));
    if (last) train_figures_ = phase_.whole();
    const auto every = static_cast<std::uint64_t>(o_.config.checkpoint.every_steps);
    if (every > 0 && steps_ % every == 0) return save(nullptr);
    return Done{};
  }

  Status validate(const BatchPlan& plan, DeviceBatch&& batch, std::uint64_t number) {
    const auto count = static_cast<std::uint64_t>(batch.count);
    if (Status done = step_->eval(std::move(batch)); !done) return done;
    phase_.images(count);
    report(plan, "Validation", "epoch " + std::to_string(plan.epoch) + " validation");
    if (!plan.last_of_phase()) return Done{};
    Result<StepSums> sums = step_->read_back();
    if (!sums) return sums.error();
    if (!sums->finite || sums->eval.not_finite > 0)
      return Error{"step", "validation of epoch " + std::to_string(plan.epoch), "the loss is not finite", "lower optim.lr"};
    Record record{"val", plan.epoch, static_cast<std::int64_t>(steps_), metrics("val", sums->eval), {}};
    Values summary = metrics("train", epoch_sums_);
    summary.insert(summary.end(), record.values.begin(), record.values.end());
    double monitored = 0;
    for (const auto& [name, value] : summary)
      if (name == keeper_.monitor()) monitored = value;
    put(std::move(record));
    log_.message(Level::info, summary_line(plan.epoch, summary, train_figures_.seconds + phase_.whole().seconds, train_figures_.images_per_s));
    shown_.clear();
    next_batch_ = number + 1;
    epoch_sums_ = {};
    return save(&monitored);
  }

  Status read_back(const BatchPlan& plan, double lr) {
    Result<StepSums> sums = step_->read_back();
    if (!sums) return sums.error();
    if (!sums->finite) {
      char text[160];
      std::snprintf(text, sizeof text, "the loss is not finite by step %llu (epoch %u), at learning rate %g",
                    static_cast<unsigned long long>(steps_), plan.epoch, lr);
      return Error{"step", "train/loss", text, "lower optim.lr or lengthen schedule.warmup_epochs"};
    }
    add(since_record_, sums->train);
    add(epoch_sums_, sums->train);
    return Done{};
  }

  void report(const BatchPlan& plan, std::string label, std::string plain) {
    Progress p{std::move(label), std::move(plain), static_cast<std::int64_t>(plan.in_phase + 1),
               static_cast<std::int64_t>(plan.phase_batches), 0, phase_.whole().seconds, {}};
    p.before = static_cast<std::int64_t>(plan.in_phase + 1) - static_cast<std::int64_t>(phase_.whole().batches);
    if (plan.split == Split::train) p.values = shown_;
    else p.values = {{"img/s", phase_.whole().images_per_s}};
    plan.last_of_phase() ? log_.finish(std::move(p)) : log_.progress(std::move(p));
  }

  Status save(const double* monitored) {
    Status saved = keeper_.save([&](Snapshot& s) -> Status {
      // Metrics of steps since the last record are read now, so that a resumed run goes on with the same sums.
      if (Result<StepSums> sums = step_->read_back(); !sums) return sums.error();
      else if (sums->finite) add(since_record_, sums->train), add(epoch_sums_, sums->train);
      s.arch = o_.config.model.arch;
      s.classes = o_.classes;
      s.state = {{"next_batch", next_batch_}, {"epoch", epoch()}, {"step", steps_}, {"records", records_},
                 {"epoch_sums", to_json(epoch_sums_)}, {"since_record", to_json(since_record_)},
                 {"bad", bad_.state()}, {"shape", shape_of(o_)}, {"config", o_.config_text}};
      json best = json::array();
      for (const Keeper::Best& b : keeper_.best()) best.push_back({{"score", b.score}, {"file", b.file}});
      s.state["best"] = std::move(best);
      return step_->snapshot(s);
    }, epoch(), monitored);
    if (saved) saved_batch_ = next_batch_;
    return saved;
  }

  Log& log_;
  Keeper keeper_;
  BadImages bad_;
  ScheduleOptions schedule_;
  std::vector<Slot*> pinned_;
  std::optional<Upload> upload_;
  std::optional<Step> step_;
  std::uint64_t next_batch_ = 0, saved_batch_ = 0, steps_ = 0;
  std::size_t records_ = 0;
  PhaseSums epoch_sums_, since_record_;
  Interval phase_;
  Interval::Figures train_figures_;
  Values shown_;
};

Trainer::Trainer(TrainerOptions options, Log& log) : impl_(std::make_unique<Impl>(std::move(options), log)) {}
Trainer::~Trainer() = default;

Result<std::uint64_t> Trainer::first_batch(const TrainerOptions& o) {
  if (!o.resume) return std::uint64_t{0};
  const json then = o.resume->state.value("shape", json::object()), now = shape_of(o);
  for (const auto& [key, value] : now.items())
    if (then.value(key, json()) != value)
      return Error{"resume", o.resume->source, key + " was " + then.value(key, json()).dump() + " and is now " + value.dump(),
                   "a run can only go on with the same data, batch, image size and seed"};
  return o.resume->state.at("next_batch").get<std::uint64_t>();
}

std::size_t Trainer::records_before(const TrainerOptions& o) { return o.resume ? o.resume->state.at("records").get<std::size_t>() : 0; }

Status Trainer::prepare_upload(const std::vector<Slot*>& slots) { return impl_->prepare_upload(slots); }
Status Trainer::upload(Batch& batch) { return impl_->upload(batch); }
Status Trainer::begin() { return impl_->begin(); }
Status Trainer::step(Batch& batch) { return impl_->step(batch); }
void Trainer::over(bool healthy) { impl_->over(healthy); }
const Sequence& Trainer::sequence() const { return impl_->o_.sequence; }
std::int64_t Trainer::epoch() const { return impl_->epoch(); }
std::int64_t Trainer::steps() const { return impl_->steps(); }
void Trainer::set_log_stats(NodeStats* stats) { impl_->o_.log_stats = stats; }
void Trainer::cancel_upload() { impl_->cancel_upload(); }

}  // namespace sluice
