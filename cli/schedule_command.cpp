// The learning rate over a run, as the training step will get it: a table, JSON or a plot. Needs neither a
// device nor, unless the rate changes from step to step, the images.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "cli/draw/plot.hpp"
#include "model/train/schedule.hpp"
#include "run/config/step_options.hpp"
#include "run/plan/run_plan.hpp"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_steps = 10'000;      // listed and drawn; a longer run is thinned to these
constexpr std::int64_t no_more = 1'000'000'000;  // steps an epoch: the product with the epochs stays a number

struct Rates {
  ScheduleOptions options;
  std::int64_t per_epoch = 0;  // optimiser steps; 0: not known
  std::string source;          // where that is from, or why it is not known
  std::int64_t max_steps = 0;
  [[nodiscard]] bool by_step() const { return options.interval == "step"; }
  [[nodiscard]] std::int64_t steps() const { return options.epochs * per_epoch; }
  [[nodiscard]] double first(std::int64_t epoch) const { return learning_rate(options, epoch, 0, per_epoch); }
  [[nodiscard]] double last(std::int64_t epoch) const {
    return learning_rate(options, epoch, std::max<std::int64_t>(per_epoch - 1, 0), per_epoch);
  }
  [[nodiscard]] double at(std::int64_t step) const {
    return learning_rate(options, step / per_epoch, step % per_epoch, per_epoch);
  }
  [[nodiscard]] std::int64_t thinning() const {
    return std::max<std::int64_t>(1, (steps() + most_steps - 1) / most_steps);
  }
};

// Optimiser steps of an epoch, from the images if they are there. A schedule by epochs can do without.
void count_steps(const Config& config, Rates& rates) {
  for (const std::filesystem::path& folder : {config.data.train, config.data.val})
    if (!std::filesystem::exists(folder)) {
      rates.source = printable(folder.string()) + " is not there; give --steps-per-epoch";
      return;
    }
  const Result<DataSets> sets = scan_data(config);
  if (!sets) {
    rates.source = sets.error().text();
    return;
  }
  const auto images = static_cast<std::int64_t>(sets->train->size());
  rates.per_epoch = images / rates.options.total_batch;
  rates.source = std::to_string(images) + " training images";
  if (rates.per_epoch == 0)
    rates.source += " are less than the total batch of " + std::to_string(rates.options.total_batch);
}

Result<Rates> rates_of(const Config& config, std::int64_t steps_per_epoch, std::int64_t devices) {
  if (steps_per_epoch < 0 || steps_per_epoch > no_more)
    return Error{"schedule", "--steps-per-epoch", "must be from 1 to " + std::to_string(no_more), ""};
  Rates rates{schedule_options(config, devices), steps_per_epoch, "--steps-per-epoch",
              config.train.max_steps};
  if (steps_per_epoch == 0) count_steps(config, rates);
  if (rates.by_step() && rates.per_epoch == 0)
    return Error{"schedule", "schedule.interval = \"step\"", "steps per epoch are not known", rates.source};
  return rates;
}

std::string six_digits(double value) { return fmt::format("{:.6g}", value); }

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string table(const Rates& r) {
  const ScheduleOptions& o = r.options;
  std::string text =
      "peak " + six_digits(peak_rate(o)) + " = optim.lr " + six_digits(o.lr) + " x total batch " +
      std::to_string(o.total_batch) + " / " + std::to_string(o.base_batch) + "; " + o.kind + ", warm-up of " +
      std::to_string(o.warmup_epochs) + " epochs, a new rate each " + o.interval + "\nsteps per epoch: " +
      (r.per_epoch > 0 ? std::to_string(r.per_epoch) + " (" + r.source + ")" : "not known: " + r.source) +
      "\n";
  if (r.max_steps > 0)
    text += "train.max_steps ends the run after " + std::to_string(r.max_steps) + " steps\n";
  text += r.by_step() ? "epoch    first step     last step\n" : "epoch            lr\n";
  for (std::int64_t e = 0; e < o.epochs; ++e) {
    text += padded(std::to_string(e), 5) + padded(six_digits(r.first(e)), 14);
    if (r.by_step()) text += padded(six_digits(r.last(e)), 14);
    text += "\n";
  }
  return text;
}

Json to_json(const Rates& r) {
  Json out;
  out["epochs"] = Json::array();
  for (std::int64_t e = 0; e < r.options.epochs; ++e) {
    Json row = {{"epoch", e}, {"lr", r.first(e)}};
    if (r.by_step()) row["last_lr"] = r.last(e);
    out["epochs"].push_back(std::move(row));
  }
  out["peak"] = peak_rate(r.options);
  out["kind"] = r.options.kind;
  out["interval"] = r.options.interval;
  out["total_batch"] = r.options.total_batch;
  out["steps_per_epoch"] = r.per_epoch > 0 ? Json(r.per_epoch) : Json(nullptr);
  out["max_steps"] = r.max_steps > 0 ? Json(r.max_steps) : Json(nullptr);
  if (!r.by_step()) return out;
  out["steps"] = Json::array();
  for (std::int64_t s = 0; s < r.steps(); s += r.thinning())
    out["steps"].push_back({{"step", s}, {"lr", r.at(s)}});
  return out;
}

// Over epochs in either case; a rate that holds for an epoch is a stair.
Plot plot_of(const Rates& r, const std::string& title) {
  Plot plot;
  plot.title = title;
  plot.x_label = "epoch";
  plot.y_label = "learning rate";
  Curve curve;
  if (r.by_step()) {
    for (std::int64_t s = 0; s < r.steps(); s += r.thinning())
      curve.points.push_back({static_cast<double>(s) / static_cast<double>(r.per_epoch), r.at(s)});
    curve.points.push_back({static_cast<double>(r.options.epochs), r.at(r.steps() - 1)});
  } else {
    for (std::int64_t e = 0; e < r.options.epochs; ++e)
      for (const std::int64_t x : {e, e + 1}) curve.points.push_back({static_cast<double>(x), r.first(e)});
  }
  plot.curves.push_back(std::move(curve));
  return plot;
}

}  // namespace

// The learning rate over a run on so many devices in all. `steps_per_epoch`: 0 counts the images; `output`: a
// plot, if not empty.
static int schedule_command(const ConfigArguments& arguments, std::int64_t steps_per_epoch,
                            std::int64_t devices, bool json, const std::string& output) {
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  if (!output.empty())
    if (const Status fine = check_plot_file("schedule", output); !fine) {
      complain(fine.error());
      return exit_usage;
    }
  const Result<Rates> rates = rates_of(*config, steps_per_epoch, devices);
  if (!rates) {
    complain(rates.error());
    return exit_usage;
  }
  if (!output.empty())
    if (const Status drawn = write_plot("schedule", output, plot_of(*rates, arguments.file)); !drawn) {
      complain(drawn.error());
      return exit_failed;
    }
  std::cout << (json ? json_text(to_json(*rates)) + "\n" : table(*rates));
  return exit_done;
}

Run add_schedule(Options& to) {
  struct Asked {
    ConfigArguments config;
    std::int64_t steps_per_epoch = 0, devices = 1;
    bool json = false;
    std::string plot;
  };
  const auto asked = std::make_shared<Asked>();
  to.config(asked->config).required();
  to.option("--steps-per-epoch", &asked->steps_per_epoch, "Instead of counting the training images")
      .range(1, 1'000'000);
  to.option("--devices", &asked->devices, "Devices of all hosts together; each has a batch of its own")
      .range(1, 1'000'000);
  to.json(asked->json);
  to.plot(asked->plot);
  return [asked] {
    return schedule_command(asked->config, asked->steps_per_epoch, asked->devices, asked->json, asked->plot);
  };
}

}  // namespace sluice
