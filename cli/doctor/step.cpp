#include "cli/doctor/step.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cmath>

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string seconds_text(double seconds) { return fmt::format("{:.1f} s", seconds); }

// Trains one step, and a second one where the first was quick: that one's time is closer to a run's. Lives on
// step's thread between begin and over.
class FirstSteps {
 public:
  explicit FirstSteps(const StepOptions& options) : options_(options) {
    options_.note = [](const std::string&) {};
  }

  Status begin() {
    Result<Step> step = Step::create(options_);
    if (!step) return step.error();
    parameters_ = static_cast<std::size_t>(step->parameters());
    step_.emplace(std::move(*step));
    return Done{};
  }

  Result<bool> batch(OnDevice&& given) {
    for (const Bad& b : given.bad) bad_.push_back(b.file + ": " + b.cause);
    const auto begin = Clock::now();
    images_ += static_cast<std::size_t>(given.batch.count);
    if (Status done = step_->train(std::move(given.batch), /*lr=*/0.0); !done) return done.error();
    const bool ends = ++batches_ % options_.accumulate == 0;
    if (ends) {
      const Result<StepSums> sums = step_->read_back();
      if (!sums) return sums.error();
      const PhaseSums& s = sums->train;
      if (batches_ == options_.accumulate)
        loss_ = s.count > 0 && s.not_finite == 0 ? s.loss / static_cast<double>(s.count) : NAN;
    }
    busy_ += seconds_since(begin);
    if (!ends) return true;
    rate_ = busy_ > 0 ? static_cast<double>(images_) / busy_ : 0;
    step_images_ = images_;
    const bool again = std::isfinite(loss_) && busy_ < 5;
    images_ = 0;
    busy_ = 0;
    return again;
  }

  void over() { step_.reset(); }

  [[nodiscard]] std::size_t parameters() const { return parameters_; }
  [[nodiscard]] std::size_t images() const { return step_images_; }
  [[nodiscard]] double rate() const { return rate_; }
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] const std::vector<std::string>& bad() const { return bad_; }

 private:
  StepOptions options_;
  std::optional<Step> step_;
  std::size_t parameters_ = 0, images_ = 0, step_images_ = 0;
  int batches_ = 0;
  double loss_ = NAN, busy_ = 0, rate_ = 0;
  std::vector<std::string> bad_;
};

}  // namespace

double look_at_step(Checklist& list, BatchRun& run) {
  const auto begin = Clock::now();
  FirstSteps steps(run.step_options());
  const Ending ending =
      run.run({[&] { return steps.begin(); },
               [&](const BatchPlan&, OnDevice&& batch) { return steps.batch(std::move(batch)); },
               [&] { steps.over(); }});
  const double found = steps.rate();
  if (ending.failure) return list.fail("one step", *ending.failure), found;
  if (!ending.well()) return list.fail("one step", "stopped by a signal", ""), found;
  if (!steps.bad().empty())
    list.warn("images of the step",
              std::to_string(steps.bad().size()) + " cannot be used: " + steps.bad().front(),
              "they were replaced; mend them or list them in data.exclude");
  if (!std::isfinite(steps.loss()))
    return list.fail("one step", "its loss is not finite", "try model.precision = \"fp32\""), found;
  list.ok("one step",
          fmt::format("of {} images: loss {:.4f}, {:.1f} images/s; {} with the start of everything",
                      steps.images(), steps.loss(), steps.rate(), seconds_text(seconds_since(begin))));
  list.figure("loss", steps.loss());
  list.figure("images_per_s", steps.rate());
  list.figure("parameters", static_cast<double>(steps.parameters()));
  return found;
}

}  // namespace sluice
