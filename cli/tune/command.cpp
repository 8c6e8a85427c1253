// The trials that people do by hand, done for them: short real runs, each in a process of its own and only if
// it fits the plan, a table, and three options of which one becomes a configuration.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

#include "base/files/durable.hpp"
#include "base/json_text.hpp"
#include "base/process/child.hpp"
#include "cli/commands.hpp"
#include "cli/tune/plan.hpp"
#include "cli/tune/table.hpp"
#include "cli/tune/trial.hpp"
#include "model/device/version.hpp"
#include "model/train/train_step.hpp"
#include "run/data/synth_tree.hpp"
#include "run/launch/signals.hpp"
#include "run/plan/fit.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

struct TuneArguments {
  ConfigArguments config;
  double minutes = 5;
  std::string output;               // a configuration, if not empty
  std::string choose = "balanced";  // which option that is
  bool keep_total = false, json = false;
  std::optional<double> trial;
};

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The line that a trial has printed; nothing if it came to none.
json line_of(const ChildEnd& end) {
  const json line = json::parse(end.out, nullptr, /*allow_exceptions=*/false);
  return line.is_object() ? line : json::object();
}

std::string why(const ChildEnd& end, const json& line) {
  if (line.contains("error")) return "failed: " + line["error"].get<std::string>();
  if (end.stopped) return "interrupted";
  if (end.too_long) return "too slow: no figures in the time that was left";
  if (end.code == 128 + SIGKILL) return "killed: out of memory?";
  const std::string last = end.err.substr(0, end.err.find('\n'));
  return "failed with exit code " + std::to_string(end.code) + (last.empty() ? "" : ": " + last);
}

class Tuning {
 public:
  Tuning(const ConfigArguments& arguments, const Config& config, const TuneArguments& asked,
         const DataSets& sets, const TuneMachine& machine, const TuneStart& start)
      : arguments_(arguments),
        config_(config),
        asked_(asked),
        sets_(sets),
        machine_(machine),
        start_(start),
        search_(start) {}

  TuneReport run() {
    const auto begin = Clock::now();
    const double all = 60 * asked_.minutes, each = std::clamp(all / 12, 2.0, 60.0);
    TuneReport report = blank();
    while (!caught_signal()) {
      const double left = all - seconds_since(begin);
      const std::optional<TuneSetting> setting = search_.next(left, each);
      if (!setting) break;
      TrialRow row = try_one(*setting, each, left);
      std::cerr << "sluice: tune: " << trial_line(report, row) << "\n";
      search_.add(std::move(row));
    }
    report.rows = search_.rows();
    report.interrupted = caught_signal() != 0;
    return report;
  }

  [[nodiscard]] Config with(const TuneSetting& setting) const {
    return load_config(arguments_.file, words_for(setting)).config;
  }

 private:
  [[nodiscard]] TuneReport blank() const {
    TuneReport report;
    report.as_configured = start_.as_configured;
    report.train_images = sets_.train->size();
    report.base_lr = config_.optim.lr;
    report.base_batch = config_.optim.base_batch;
    report.chosen = asked_.choose;
    return report;
  }

  [[nodiscard]] std::vector<std::string> words_for(const TuneSetting& setting) const {
    std::vector<std::string> words = arguments_.sets;
    for (std::string& word : changes(start_.as_configured, setting)) words.push_back(std::move(word));
    return words;
  }

  TrialRow try_one(const TuneSetting& setting, double seconds, double left) {
    TrialRow row;
    row.setting = setting;
    const Loaded loaded = load_config(arguments_.file, words_for(setting));
    if (!loaded.errors.empty()) return row.failure = "refused: " + loaded.errors.front().text(), row;
    if (const Result<RunPlan> plan = plan_trial(loaded.config, machine_, sets_); !plan) {
      const std::string& cause = plan.error().cause;
      row.failure = "refused by the plan: " + plan.error().subject + ": " + cause.substr(0, cause.find('\n'));
      return row;
    }
    const auto begin = Clock::now();
    const ChildEnd end = run_trial(setting, seconds, left);
    row.seconds = seconds_since(begin);
    const json line = line_of(end);
    if (end.code != exit_done || !line.contains("images_per_s")) return row.failure = why(end, line), row;
    row.figures =
        TrialFigures{line["images_per_s"], line["data_wait"], end.peak_rss, line["vram"], line["bound_by"]};
    return row;
  }

  [[nodiscard]] ChildEnd run_trial(const TuneSetting& setting, double seconds, double left) const {
    ChildOptions child;
    child.words = {"sluice", "tune", arguments_.file, "--trial", std::to_string(seconds)};
    for (std::string& word : words_for(setting)) {
      child.words.emplace_back("--set");
      child.words.push_back(std::move(word));
    }
    child.limit =
        std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * std::max(left, 3 * seconds + 10)));
    child.stop = [] { return caught_signal() != 0; };
    return run_child(child);
  }

  const ConfigArguments& arguments_;
  const Config& config_;
  const TuneArguments& asked_;
  const DataSets& sets_;
  const TuneMachine& machine_;
  TuneStart start_;
  TuneSearch search_;
};

// Asked of a process that ends: a GPU that this one opened would have less room for the trials.
std::size_t free_vram(const ConfigArguments& arguments) {
  ChildOptions child;
  child.words = {"sluice", "tune", arguments.file, "--trial", "0"};
  for (const std::string& word : arguments.sets) child.words.insert(child.words.end(), {"--set", word});
  return line_of(run_child(child)).value("vram", std::size_t{0});
}

Status write_config(const std::string& file, const Config& config, const TuneReport& report,
                    const std::string& source, const TuneSetting& setting) {
  const std::string text = fmt::format(
      "# {}\n# The {} option of `sluice tune {}`; total batch {}: the learning rate's peak is {:.6g}\n\n{}",
      version_text(), report.chosen, source, setting.total_batch(), tuned_lr(report, setting),
      to_toml(config));
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return write_output("tune", file, {&part, 1});
}

int refuse(const Error& error) {
  complain(error);
  return exit_usage;
}

}  // namespace

// Short trials within the plan, and what they come to.
static int tune_command(const ConfigArguments& arguments, const TuneArguments& asked) {
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  std::error_code none;
  if (!asked.output.empty() && fs::equivalent(asked.output, arguments.file, none))
    return refuse({"tune", asked.output, "is the configuration itself", "give -o another name"});
  const Result<std::string> device = resolve_device(config->model.device);
  if (!device) return refuse(device.error());
  if (*device == "cpu")  // a GPU is not to be opened here: the trials need its memory
    if (Status fits = fits_before_synth(*config, *device); !fits) return refuse(fits.error());
  if (Status made = make_synth_tree(*config); !made) return refuse(made.error());
  const Result<DataSets> sets = scan_data(*config);
  if (!sets) return refuse(sets.error());
  if (*device == "cpu")
    if (Status fits = fits_here(*config, *device, data_of(*sets)); !fits) return refuse(fits.error());
  TuneMachine machine;
  machine.host = this_machine();
  machine.device = *device;
  if (*device != "cpu") machine.vram = free_vram(arguments);
  const Result<RunPlan> plan = plan_trial(*config, machine, *sets);
  if (!plan) return refuse(plan.error());

  catch_signals();
  const TuneStart start{settled(*config, *plan), machine.host.cpus, *device != "cpu", asked.keep_total};
  Tuning tuning(arguments, *config, asked, *sets, machine, start);
  TuneReport report = tuning.run();
  const std::optional<TuneOptions> options = choose_options(report.rows);
  Status wrote = Done{};
  if (options && !asked.output.empty()) {
    const TuneSetting& setting = report.rows[option_row(*options, asked.choose)].setting;
    wrote = write_config(asked.output, tuning.with(setting), report, arguments.file, setting);
    if (wrote) report.written = asked.output;
  }
  if (asked.json)
    std::cout << json_text(tune_json(report)) << "\n";
  else
    std::cout << tune_text(report);
  if (!wrote) complain(wrote.error());
  if (report.interrupted) return 128 + caught_signal();
  return options && wrote ? exit_done : exit_failed;
}

Run add_tune(Options& to) {
  const auto asked = std::make_shared<TuneArguments>();
  to.config(asked->config).required();
  to.option("--minutes", &asked->minutes, "Time for all trials together")
      .shows_default()
      .range(0.05, 10000.0);
  to.option("-o,--output", &asked->output, "Write the chosen option as a configuration").type("FILE");
  to.option("--choose", &asked->choose, "conservative, balanced or aggressive")
      .shows_default()
      .one_of({"conservative", "balanced", "aggressive"});
  to.flag("--keep-total", asked->keep_total,
          "Keep the total batch: other batches get another train.accumulate");
  to.option("--trial", &asked->trial, "One trial of so many seconds, as a line of JSON").hidden();
  to.json(asked->json);
  return [asked] {
    return asked->trial ? tune_trial(asked->config, *asked->trial) : tune_command(asked->config, *asked);
  };
}

}  // namespace sluice
