#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/random.hpp"
#include "base/text.hpp"
#include "base/thread_limit.hpp"
#include "cli/bench/benches.hpp"
#include "cli/common.hpp"
#include "run/config/step_options.hpp"
#include "run/plan/fit.hpp"
#include "run/plan/run_plan.hpp"

namespace sluice {
namespace {

struct StepBench {
  ConfigArguments config;
  int steps = 5, warm = 2;
  bool json = false;
};

using Clock = std::chrono::steady_clock;
constexpr double rate = 0.01;  // small: the labels mean nothing, and the loss must stay finite

// One batch of noise, given again and again.
struct Noise {
  explicit Noise(const StepOptions& o)
      : samples(static_cast<std::size_t>(o.batch) * o.task.sample.bytes()),
        labels(static_cast<std::size_t>(o.batch)),
        sample(o.task.sample) {
    Random random(o.seed, 0, 0, Purpose::synth);
    for (std::uint8_t& value : samples) value = static_cast<std::uint8_t>(random.below(256));
    for (std::int32_t& label : labels)
      label = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(o.classes)));
  }
  [[nodiscard]] HostBatch give() const {
    return {samples.data(), labels.data(), static_cast<int>(labels.size()), sample, [] {}};
  }
  std::vector<std::uint8_t> samples;
  std::vector<std::int32_t> labels;
  SampleLayout sample;
};

struct StepFigures {
  std::vector<double> ms;    // of each step, sorted
  double faults = 0;         // page faults per step
  std::size_t peak_rss = 0;  // of the process
  [[nodiscard]] double median() const {
    const std::size_t n = ms.size();
    return (ms[(n - 1) / 2] + ms[n / 2]) / 2;
  }
};

// Reading the sums back waits for the device, so the time is that of the whole step.
Result<double> time_step(Step& step, Upload& upload, const Noise& noise, int batches) {
  const auto begin = Clock::now();
  for (int i = 0; i < batches; ++i) {
    Result<DeviceBatch> batch = upload.put(noise.give());
    if (!batch) return batch.error();
    if (Status done = step.train(std::move(*batch), rate); !done) return done.error();
  }
  const Result<StepSums> sums = step.read_back();
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  if (!sums) return sums.error();
  if (!sums->finite) return Error{"bench", "step", "the loss is not finite", "report this configuration"};
  return ms;
}

Result<StepFigures> measure(const StepOptions& options, const StepBench& bench) {
  Result<Step> step = Step::create(options);
  if (!step) return step.error();
  const auto device = open_device(options.device);
  if (!device) return device.error();
  Result<Upload> upload = Upload::create(*device, {options.batch, options.task.sample, 2});
  if (!upload) return upload.error();
  const Noise noise(options);
  StepFigures measured;
  long before = 0;
  for (int i = 0; i < bench.warm + bench.steps; ++i) {
    if (i == bench.warm) before = usage().ru_minflt;
    const Result<double> ms = time_step(*step, *upload, noise, options.accumulate);
    if (!ms) return ms.error();
    if (i >= bench.warm) measured.ms.push_back(*ms);
  }
  const rusage after = usage();
  measured.faults = static_cast<double>(after.ru_minflt - before) / bench.steps;
  measured.peak_rss = static_cast<std::size_t>(after.ru_maxrss) * 1024;
  std::sort(measured.ms.begin(), measured.ms.end());
  return measured;
}

void print(const StepOptions& o, const StepBench& bench, const StepFigures& m) {
  const double images = 1000.0 * o.batch * o.accumulate / m.median();
  if (bench.json) {
    std::cout << nlohmann::ordered_json{{"arch", o.arch},
                                        {"device", o.device},
                                        {"precision", o.precision},
                                        {"batch", o.batch},
                                        {"accumulate", o.accumulate},
                                        {"image_size", o.task.sample.width()},
                                        {"threads", o.threads},
                                        {"steps", m.ms.size()},
                                        {"step_ms", m.median()},
                                        {"min_ms", m.ms.front()},
                                        {"max_ms", m.ms.back()},
                                        {"images_per_s", images},
                                        {"faults_per_step", m.faults},
                                        {"peak_rss_bytes", m.peak_rss}}
                     .dump()
              << "\n";
    return;
  }
  std::printf("%s, %s, %s, batch %d at %s, %d threads\n", o.arch.c_str(), o.device.c_str(),
              o.precision.c_str(), o.batch * o.accumulate, o.task.size.c_str(), o.threads);
  std::printf("step      %.1f ms (median of %zu; %.1f to %.1f)\n", m.median(), m.ms.size(), m.ms.front(),
              m.ms.back());
  std::printf("images/s  %.1f\n", images);
  std::printf("memory    %s at its peak, %.0f page faults a step\n", readable_bytes(m.peak_rss).c_str(),
              m.faults);
}

}  // namespace

static int bench_step_command(const ConfigArguments& arguments, const StepBench& bench) {
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  const Result<std::string> device = resolve_device(config->model.device);
  if (!device) {
    complain(device.error());
    return exit_usage;
  }
  const int classes = config->data.classes > 0 ? static_cast<int>(config->data.classes) : 1000;
  if (const Status fits = fits_here(*config, *device, {0, 0, classes, 0, "none are read"}); !fits) {
    complain(fits.error());
    return exit_usage;
  }
  const Result<RunPlan> plan = plan_run(*config, this_machine(), *device, /*index_bytes=*/0, 1, classes);
  if (!plan) {
    complain(plan.error());
    return exit_usage;
  }
  if (const Status possible = can_make_threads(1 + plan->torch_threads); !possible) {
    complain(possible.error());
    return exit_usage;
  }
  const StepOptions options = step_options(*config, classes, *device, plan->torch_threads);
  Result<StepFigures> measured = Error{};
  std::thread([&] { measured = measure(options, bench); }).join();  // as in a run: a thread of its own
  if (!measured) {
    complain(measured.error());
    return exit_failed;
  }
  print(options, bench, *measured);
  return exit_done;
}

Run add_bench_step(Options& to) {
  const auto asked = std::make_shared<StepBench>();
  to.config(asked->config).required();
  to.option("--steps", &asked->steps, "Steps to measure").shows_default().range(1, 1'000'000);
  to.option("--warm", &asked->warm, "Steps before, which do not count").shows_default().range(0, 1'000'000);
  to.json(asked->json, "Print one JSON object");
  return [asked] { return bench_step_command(asked->config, *asked); };
}

}  // namespace sluice
