#include <fmt/core.h>

#include <iostream>

#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "cli/screen_log.hpp"
#include "model/weights/weights_file.hpp"
#include "run/config/step_options.hpp"
#include "run/train/batch_run.hpp"
#include "run/train/interval.hpp"

namespace sluice {
namespace {

struct EvalArguments {
  ConfigArguments config;
  std::string checkpoint;
  bool averaged = false, json = false;
};

// One pass over the validation set. Lives on step's thread between begin and over.
class Evaluation {
 public:
  Evaluation(const BatchRun& run, Snapshot weights, const Config& config, Log& log)
      : options_(run.step_options()), weights_(std::move(weights)), max_bad_(config.data.max_bad), log_(log) {
    options_.ema = 0;  // whichever weights are asked for become the trained ones here
  }

  Status begin() {
    Result<Step> step = Step::create(options_);
    if (!step) return step.error();
    const Result<bool> other_classes = step->start_from(*weights_);
    if (!other_classes) return other_classes.error();
    if (*other_classes)
      return Error{
          "eval", weights_->source,
          "its classifier is not for the " + std::to_string(options_.classes) + " classes of data.val",
          "take the configuration it was made with"};
    weights_.reset();
    step_.emplace(std::move(*step));
    return Done{};
  }

  Result<bool> batch(const BatchPlan& plan, OnDevice&& given) {
    if (!phase_.started()) phase_.start();
    images_ += plan.places;
    left_out_ += given.bad.size();
    for (const Bad& b : given.bad)
      log_.message(Level::warning, printable(b.file) + ": " + printable(b.cause) + "; left out");
    phase_.images(plan.places);
    if (Status done = step_->eval(std::move(given.batch)); !done) return done.error();
    report(plan);
    if (!plan.last_of_phase()) return true;
    if (static_cast<double>(left_out_) > max_bad_ * static_cast<double>(images_) + 1e-6)
      return Error{"eval", "data.val",
                   std::to_string(left_out_) + " of " + std::to_string(images_) +
                       " images cannot be used, more than data.max_bad allows",
                   "mend or exclude them, or raise data.max_bad"};
    Result<StepSums> sums = step_->read_back();
    if (!sums) return sums.error();
    if (sums->eval.not_finite > 0)
      return Error{"eval", "val/loss", "is not finite", "these weights are not those of a sound run"};
    sums_ = sums->eval;
    return true;
  }

  void over() { step_.reset(); }

  [[nodiscard]] const PhaseSums& sums() const { return sums_; }
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  void report(const BatchPlan& plan) {
    const Interval::Figures figures = phase_.whole();
    Progress p{"Validation", "validation"};
    p.done = static_cast<std::int64_t>(plan.in_phase + 1);
    p.total = static_cast<std::int64_t>(plan.phase_batches);
    p.elapsed = figures.seconds;
    p.values = {{"img/s", figures.images_per_s}};
    plan.last_of_phase() ? log_.finish(std::move(p)) : log_.progress(std::move(p));
  }

  StepOptions options_;
  std::optional<Snapshot> weights_;
  double max_bad_;
  Log& log_;
  std::optional<Step> step_;
  Interval phase_;
  PhaseSums sums_;
  std::uint64_t images_ = 0, left_out_ = 0;
};

void print(const Task& task, const Evaluation& evaluation, const EvalArguments& asked) {
  const Values found = task.figures("val/", evaluation.sums());
  if (asked.json) {
    nlohmann::ordered_json out;
    for (const auto& [name, value] : found) out[name] = value;
    out["images"] = evaluation.sums().count;
    out["left_out"] = evaluation.left_out();
    out["checkpoint"] = asked.checkpoint;
    out["weights"] = asked.averaged ? "averaged" : "trained";
    std::cout << json_text(out) << "\n";
    return;
  }
  for (const auto& [name, value] : found)
    std::cout << (name == "val/loss" ? fmt::format("{} {:.4f}", name, value)
                                     : fmt::format(" {} {:.2f}", name, value));
  std::cout << "\n"
            << evaluation.sums().count << " images, " << evaluation.left_out() << " left out; "
            << (asked.averaged ? "averaged" : "trained") << " weights of " << printable(asked.checkpoint)
            << "\n";
}

}  // namespace

static int eval_command(const ConfigArguments& arguments, const EvalArguments& asked) {
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  Result<BatchRun> run = BatchRun::validation(*config);
  if (!run) {
    complain(run.error());
    return exit_usage;
  }
  Result<Snapshot> weights =
      read_weights(asked.checkpoint, asked.averaged, {.arch = config->model.arch, .classes = run->classes()});
  if (!weights) {
    complain(weights.error());
    return exit_usage;
  }
  const std::unique_ptr<Log> log = screen_log();
  Evaluation evaluation(*run, std::move(*weights), *config, *log);
  const Ending ending = run->run(
      {[&] { return evaluation.begin(); },
       [&](const BatchPlan& plan, OnDevice&& batch) { return evaluation.batch(plan, std::move(batch)); },
       [&] { evaluation.over(); }});
  (void)log->close();  // the screen alone: nothing that could fail
  if (!ending.well()) return told(ending);
  if (evaluation.sums().count == 0) {
    complain({"eval", "data.val", "no image could be used", ""});
    return exit_failed;
  }
  print(task_of(*config), evaluation, asked);
  return exit_done;
}

Run add_eval(Options& to) {
  const auto asked = std::make_shared<EvalArguments>();
  to.config(asked->config).required();
  to.option("--checkpoint", &asked->checkpoint, "Weights: .ckpt, .safetensors, .pt or .pth").required();
  to.flag("--ema", asked->averaged, "The averaged weights (optim.ema) instead of the trained ones");
  to.json(asked->json);
  return [asked] { return eval_command(asked->config, *asked); };
}

}  // namespace sluice
