// One trial of `sluice tune`, in a process of its own: some seconds of real training, told as one line of
// JSON. Whatever goes wrong in here, the search outlives it.
#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "graph/figures/diagnosis.hpp"
#include "model/device/device.hpp"
#include "run/config/step_options.hpp"
#include "run/session/ending.hpp"
#include "run/train/batch_run.hpp"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t more_than_enough = 1'000'000;  // batches: time ends a trial

double between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

// Lives on step's thread between begin and over. A quarter of the time and two steps go by before it counts;
// less where steps are so slow that the time is over by then.
class TimedSteps {
 public:
  TimedSteps(const StepOptions& options, const MixOptions& mix, double seconds)
      : options_(options), mix_(mix), seconds_(seconds) {
    options_.note = [](const std::string&) {};
  }

  Status begin() {
    Result<Step> step = Step::create(options_);
    if (!step) return step.error();
    step_.emplace(std::move(*step));
    return Done{};
  }

  Result<bool> batch(OnDevice&& given) {
    const auto now = Clock::now();
    const Mix mix = choose_mix(mix_, options_.seed, batches_, given.batch.sample.width());
    if (batches_++ == 0) first_ = now;
    if (counting_) {
      waited_ += between(last_end_, now);
      images_ += static_cast<std::uint64_t>(given.batch.count);
    }
    const TrainStep how(/*rate=*/0.0, /*finished=*/0, mix);  // weights that stay keep the loss finite
    if (Status done = step_->train(std::move(given.batch), how); !done) return done.error();
    last_end_ = Clock::now();
    if (batches_ % static_cast<std::uint64_t>(options_.accumulate) != 0) return true;
    const auto steps = batches_ / static_cast<std::uint64_t>(options_.accumulate);
    const double so_far = between(first_, last_end_);
    if (!counting_) {
      if ((steps >= 2 && so_far >= seconds_ / 4) || so_far >= seconds_) return start_counting();
      return true;
    }
    if (so_far < seconds_) return true;
    return finish();
  }

  void over() { step_.reset(); }

  [[nodiscard]] double images_per_s() const {
    return measured_ > 0 ? static_cast<double>(images_) / measured_ : 0;
  }
  [[nodiscard]] double data_wait() const { return measured_ > 0 ? waited_ / measured_ : 0; }
  [[nodiscard]] std::size_t vram() const { return vram_; }

 private:
  // Reading back waits for the device: its queue is empty when the clock starts, and when it stops.
  Result<bool> start_counting() {
    if (const Result<StepSums> sums = step_->read_back(); !sums) return sums.error();
    counting_ = true;
    started_ = last_end_ = Clock::now();
    return true;
  }

  Result<bool> finish() {
    if (const Result<StepSums> sums = step_->read_back(); !sums) return sums.error();
    measured_ = between(started_, Clock::now());
    if (options_.device != "cpu")
      if (const auto device = open_device(options_.device); device) vram_ = (*device)->memory().peak;
    return false;
  }

  StepOptions options_;
  MixOptions mix_;
  double seconds_;
  std::optional<Step> step_;
  Clock::time_point first_, started_, last_end_;
  bool counting_ = false;
  std::uint64_t batches_ = 0, images_ = 0;
  double waited_ = 0, measured_ = 0;
  std::size_t vram_ = 0;
};

int tell(const Json& line, int code) {
  std::cout << json_text(line) << std::endl;
  return code;
}

int tell(const Error& error) { return tell({{"error", error.text()}}, exit_failed); }

// What the search must know of a GPU before it plans: asked in a process that ends, so that nothing is held.
int tell_device(const std::string& asked) {
  const Result<std::string> name = resolve_device(asked);
  if (!name) return tell(name.error());
  const auto device = open_device(*name);
  if (!device) return tell(device.error());
  return tell({{"vram", *name == "cpu" ? 0 : (*device)->memory().free}}, exit_done);
}

}  // namespace

int tune_trial(const ConfigArguments& arguments, double seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Loaded loaded = load_config(arguments.file, arguments.sets);
  if (!loaded.errors.empty()) return tell(loaded.errors.front());
  if (seconds <= 0) return tell_device(loaded.config.model.device);
  Result<BatchRun> run = BatchRun::training(loaded.config, more_than_enough);
  if (!run) return tell(run.error());
  TimedSteps steps(run->step_options(), mix_options(loaded.config), seconds);
  const Ending ending =
      run->run({[&] { return steps.begin(); },
                [&](const BatchPlan&, OnDevice&& batch) { return steps.batch(std::move(batch)); },
                [&] { steps.over(); }});
  if (ending.failure) return tell(*ending.failure);
  if (!ending.well()) return ending.code();
  return tell({{"images_per_s", steps.images_per_s()},
               {"data_wait", steps.data_wait()},
               {"vram", steps.vram()},
               {"bound_by", diagnose(ending.figures).bound_by}},
              exit_done);
}

}  // namespace sluice
