#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "cli/draw/plot.hpp"
#include "cli/screen_log.hpp"
#include "model/weights/weights_file.hpp"
#include "run/config/step_options.hpp"
#include "run/train/batch_run.hpp"
#include "run/train/interval.hpp"
#include "run/train/rate_search.hpp"

namespace sluice {
namespace {

struct LrFindArguments {
  ConfigArguments config;
  RateSearchOptions range;
  bool json = false;
  std::string output;  // a plot, if not empty
};

// Trains as the run would, with a rate that rises from step to step. Lives on step's thread between begin
// and over.
class Search {
 public:
  Search(const Config& config, const BatchRun& run, const RateSearch& test, std::optional<Snapshot> weights,
         Log& log)
      : test_(test),
        options_(run.step_options()),
        schedule_(schedule_options(config)),
        mix_(mix_options(config)),
        weights_(std::move(weights)),
        total_(static_cast<std::int64_t>(run.batches()) / options_.accumulate),
        log_(log) {
    options_.ema = 0;
  }

  Status begin() {
    Result<Step> step = Step::create(options_);
    if (!step) return step.error();
    if (weights_) {
      const Result<bool> anew = step->start_from(*weights_);
      if (!anew) return anew.error();
      weights_.reset();
    }
    step_.emplace(std::move(*step));
    return Done{};
  }

  Result<bool> batch(OnDevice&& given) {
    if (!phase_.started()) phase_.start();
    for (const Bad& b : given.bad)
      log_.message(Level::warning, printable(b.file) + ": " + printable(b.cause) + "; replaced");
    schedule_.lr = test_.rate(steps_);
    const Mix mix = choose_mix(mix_, options_.seed, batches_, given.batch.sample.width());
    const TrainStep how(peak_rate(schedule_), static_cast<std::uint64_t>(steps_), mix);
    phase_.images(static_cast<std::uint64_t>(given.batch.count));
    if (Status done = step_->train(std::move(given.batch), how); !done) return done.error();
    if (++batches_ % static_cast<std::uint64_t>(options_.accumulate) != 0) return true;
    const Result<StepSums> sums = step_->read_back();
    if (!sums) return sums.error();
    const PhaseSums& s = sums->train;
    const bool finite = sums->finite && s.not_finite == 0 && s.count > 0;
    const double loss =
        finite ? s.loss / static_cast<double>(s.count) : std::numeric_limits<double>::quiet_NaN();
    ++steps_;
    const bool more = test_.add(loss);
    report(loss, more);
    return more;
  }

  void over() { step_.reset(); }
  [[nodiscard]] RateSearchOutcome outcome() const { return test_.outcome(); }

 private:
  void report(double loss, bool more) {
    Progress p{"Range test", "range test"};
    p.done = steps_;
    p.total = total_;
    p.elapsed = phase_.whole().seconds;
    p.values = {{"train/loss", loss}, {"optim.lr", schedule_.lr}};
    more ? log_.progress(std::move(p)) : log_.finish(std::move(p));
  }

  RateSearch test_;
  StepOptions options_;
  ScheduleOptions schedule_;
  MixOptions mix_;
  std::optional<Snapshot> weights_;
  std::int64_t total_, steps_ = 0;
  std::uint64_t batches_ = 0;
  Log& log_;
  std::optional<Step> step_;
  Interval phase_;
};

Plot plot_of(const RateSearchOutcome& outcome, const std::string& title) {
  Plot plot;
  plot.title = title + ": learning-rate range test";
  plot.x_label = "optim.lr";
  plot.y_label = "train/loss";
  plot.log_x = true;
  plot.curves = {{"loss", {}, true}, {"smoothed", {}}};
  double top = 0;
  for (const RateSearchPoint& p : outcome.points) {
    plot.curves[0].points.push_back({p.rate, p.loss});
    plot.curves[1].points.push_back({p.rate, p.smooth});
    if (std::isfinite(p.smooth)) top = std::max(top, p.smooth);
  }
  if (top > 0) plot.y_top = 1.5 * top;  // at the end, losses are out of all proportion
  if (const auto rate = outcome.suggestion()) {
    const auto at = std::ranges::lower_bound(outcome.points, *rate, {}, &RateSearchPoint::rate);
    plot.mark = PlotMark{{at->rate, at->smooth}, fmt::format("suggestion: optim.lr = {:.2g}", *rate)};
  }
  return plot;
}

int refuse(const Error& error) {
  complain(error);
  return exit_usage;
}

int tell(const RateSearchOutcome& outcome, const Config& config, const std::string& title,
         const LrFindArguments& asked) {
  if (!asked.output.empty())
    if (const Status drawn = write_plot("lr-find", asked.output, plot_of(outcome, title)); !drawn) {
      complain(drawn.error());
      return exit_failed;
    }
  if (asked.json) {
    nlohmann::ordered_json out = range_json(outcome);
    out["total_batch"] = config.train.batch * config.train.accumulate;
    out["base_batch"] = config.optim.base_batch;
    std::cout << json_text(out) << "\n";
  } else {
    std::cout << range_table(outcome);
  }
  return exit_done;
}

}  // namespace

static int lr_find_command(const ConfigArguments& arguments, const LrFindArguments& asked) {
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  const Result<RateSearch> test = RateSearch::make(asked.range);
  if (!test) return refuse(test.error());
  if (!asked.output.empty())
    if (const Status fine = check_plot_file("lr-find", asked.output); !fine) return refuse(fine.error());
  std::optional<Snapshot> weights;
  if (!config->model.weights.empty()) {
    Result<Snapshot> read = read_weights(config->model.weights);
    if (!read) return refuse(read.error());
    weights = std::move(*read);
  }
  Result<BatchRun> run =
      BatchRun::training(*config, static_cast<std::uint64_t>(asked.range.steps * config->train.accumulate));
  if (!run) return refuse(run.error());
  const std::unique_ptr<Log> log = screen_log();
  Search search(*config, *run, *test, std::move(weights), *log);
  const Ending ending =
      run->run({[&] { return search.begin(); },
                [&](const BatchPlan&, OnDevice&& batch) { return search.batch(std::move(batch)); },
                [&] { search.over(); }});
  (void)log->close();  // the screen alone: nothing that could fail
  return ending.well() ? tell(search.outcome(), *config, arguments.file, asked) : told(ending);
}

Run add_lr_find(Options& to) {
  const auto asked = std::make_shared<LrFindArguments>();
  to.config(asked->config).required();
  to.option("--low", &asked->range.low, "First optim.lr").shows_default();
  to.option("--high", &asked->range.high, "Last optim.lr").shows_default();
  to.option("--steps", &asked->range.steps, "Optimiser steps at most").shows_default();
  to.json(asked->json);
  to.plot(asked->output);
  return [asked] { return lr_find_command(asked->config, *asked); };
}

}  // namespace sluice
