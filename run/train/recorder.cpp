#include "run/train/recorder.hpp"

#include "base/printable.hpp"

namespace sluice {

void Recorder::batch_came(const BatchPlan& plan, Nanoseconds waited) {
  if (plan.in_phase == 0 || !phase_.started()) phase_.start();
  phase_.waited(waited);
}

void Recorder::batch_done(const BatchPlan& plan) {
  const Interval::Figures figures = phase_.whole();
  const bool training = plan.split == Split::train;
  if (training && plan.last_of_phase()) trained_ = figures;
  if (!o_.speaks) return;
  const std::string number = std::to_string(plan.epoch);
  const auto done = static_cast<std::int64_t>(plan.in_phase + 1);
  Progress progress{.label = training ? "Epoch " + number : "Validation",
                    .plain = "epoch " + number + (training ? "" : " validation"),
                    .done = done,
                    .total = static_cast<std::int64_t>(plan.phase_batches),
                    .before = done - static_cast<std::int64_t>(figures.batches),
                    .elapsed = figures.seconds,
                    .values = training ? shown_ : Values{{"img/s", figures.images_per_s}}};
  plan.last_of_phase() ? log_.finish(std::move(progress)) : log_.progress(std::move(progress));
}

void Recorder::training(std::int64_t epoch, std::int64_t step, const PhaseSums& since_record, double lr) {
  const Interval::Figures rates = phase_.since_last();
  Record record{.event = "train", .epoch = epoch, .step = step, .values = o_.figures("train/", since_record)};
  shown_.clear();
  if (since_record.count > 0) shown_.push_back(record.values.front());  // the loss
  shown_.insert(shown_.end(), {{"train/lr", lr}, {"img/s", rates.images_per_s}});
  record.values.insert(record.values.end(), {{"train/lr", lr},
                                             {"step_ms", rates.step_ms * o_.accumulate},
                                             {"images_per_s", rates.images_per_s},
                                             {"data_wait", rates.data_wait}});
  for (const auto& [name, value] : sources_.gpu()) {
    record.values.emplace_back(name, value);
    name == "gpu_util" ? shown_.emplace_back("gpu %", value) : shown_.emplace_back("gpu GiB", value / 0x1p30);
  }
  put(std::move(record));
}

Values Recorder::validation(std::int64_t epoch, std::int64_t step, const PhaseSums& epoch_sums,
                            const StepSums& sums) {
  Record record{.event = "val", .epoch = epoch, .step = step, .values = o_.figures("val/", sums.eval)};
  for (auto& value : sums.ema.count > 0 ? o_.figures("val/ema_", sums.ema) : Values())
    record.values.push_back(std::move(value));
  if (sums.eval.count == 0)
    warn("validation of epoch " + std::to_string(epoch) +
         ": no image could be used; it has no metrics and is not among the best");
  Values summary = o_.figures("train/", epoch_sums);
  summary.insert(summary.end(), record.values.begin(), record.values.end());
  const Interval::Figures rates = phase_.whole();
  record.values.insert(record.values.end(),
                       {{"images_per_s", rates.images_per_s},
                        {"data_wait", rates.data_wait},
                        {"peak_ledger_bytes", static_cast<double>(sources_.ledger_peak())}});
  const std::string diagnosis = sources_.diagnosis();
  record.texts = {{"diagnosis", diagnosis}};
  put(std::move(record));
  tell(summary_line(epoch, summary, trained_.seconds + phase_.whole().seconds, trained_.images_per_s));
  tell(diagnosis);
  shown_.clear();
  return summary;
}

void Recorder::tell(std::string text) {
  if (o_.speaks) log_.message(Level::info, std::move(text));
}

void Recorder::warn(std::string text) {
  if (o_.speaks) log_.message(Level::warning, std::move(text));
}

void Recorder::bad_images(const std::vector<Bad>& bad) {
  for (const Bad& b : bad)
    log_.message(Level::warning, printable(b.file) + ": " + printable(b.cause) +
                                     (b.replacement.empty() ? "; left out" : "; replaced"));
}

void Recorder::put(Record record) {
  if (!o_.speaks) return;
  const auto before = log_.waited();
  log_.put(std::move(record));
  ++o_.records;
  if (sources_.log_stats) sources_.log_stats->waited_for_bound((log_.waited() - before).count());
}

}  // namespace sluice
