// The command line. One sub-command, one file; this one only knows the words.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>

#include "base/printable.hpp"
#include "base/process/descriptors.hpp"
#include "base/thread_limit.hpp"
#include "cli/commands.hpp"
#include "cli/leave.hpp"

namespace {

using namespace sluice;

int run(int count, char** words) {
  CLI::App app{"Trains image networks from JPEGs, inside a RAM budget that cannot be overrun.", "sluice"};
  app.require_subcommand(0, 1);
  // Its messages quote words of the command line.
  app.failure_message([](const CLI::App* which, const CLI::Error& error) {
    return CLI::FailureMessage::simple(
        which, CLI::Error(error.get_name(), printable(error.what()), error.get_exit_code()));
  });
  bool version = false;
  app.add_flag("--version", version, "Versions of sluice and its libraries");

  ConfigArguments arguments;
  const auto takes_config = [&](CLI::App* command, const char* what) {
    command->add_option("config", arguments.file, what)->required();
    command
        ->add_option("--set", arguments.sets,
                     "Override a key of the configuration: --set train.batch=64; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false)
        ->take_all();
    return command;
  };

  TrainArguments to_train;
  to_train.words.assign(words, words + count);
  CLI::App* train = takes_config(app.add_subcommand("train", "Train a network"), "Configuration file (TOML)");
  train
      ->add_option("--resume", to_train.resume,
                   "Go on from a checkpoint: a file, or auto for the newest sound one")
      ->type_name("auto|FILE");
  train->add_option("--devices", to_train.launch.devices, "Ranks to start on this host, one for each device");
  train->add_option("--nodes", to_train.launch.nodes, "Hosts; MASTER_ADDR names the one with node rank 0");
  train->add_option("--node-rank", to_train.launch.node_rank, "Which of the hosts this one is, from 0");

  bool reference_only = false;
  CLI::App* config = app.add_subcommand("config", "Print the resolved configuration as TOML");
  takes_config(config, "Configuration file (TOML)")->get_option("config")->required(false);
  config->add_flag("--reference", reference_only,
                   "Print what every key means instead (docs/configuration.md)");

  std::string format = "dot", output;
  CLI::App* graph = takes_config(
      app.add_subcommand("graph", "Draw the graph of a configuration, or of a run with its figures"),
      "Configuration file or run folder");
  graph->add_option("--format", format, "dot or svg")->check(CLI::IsMember({"dot", "svg"}));
  graph->add_option("-o,--output", output, "Write to this file instead of stdout");

  std::string plot_file;
  std::int64_t steps_per_epoch = 0, devices = 1;
  bool as_json = false;
  const auto takes_json = [&](CLI::App* command) {
    command->add_flag("--json", as_json, "Print one JSON object instead of a table");
  };
  const auto takes_plot = [&](CLI::App* command) {
    command->add_option("-o,--output", plot_file, "Draw a plot into this file too")->type_name("FILE.svg");
  };
  CLI::App* schedule = takes_config(app.add_subcommand("schedule", "Print the learning rate over a run"),
                                    "Configuration file (TOML)");
  schedule->add_option("--steps-per-epoch", steps_per_epoch, "Instead of counting the training images")
      ->check(CLI::Range(1, 1000000));
  schedule->add_option("--devices", devices, "Devices of all hosts together; each has a batch of its own")
      ->check(CLI::Range(1, 1000000));
  takes_json(schedule);
  takes_plot(schedule);

  PlanArguments to_plan;
  CLI::App* plan = takes_config(
      app.add_subcommand("plan", "Print the memory, steps and time that a configuration will take"),
      "Configuration file (TOML)");
  plan->add_option("--machine", to_plan.machine,
                   "Plan for this machine (configs/machines) instead of this one")
      ->type_name("FILE");
  plan->add_option("--devices", to_plan.devices, "Devices of each host, one rank for each")
      ->check(CLI::Range(1, 1024));
  plan->add_option("--nodes", to_plan.nodes, "Hosts")->check(CLI::Range(1, 100000));
  plan->add_option("--rate", to_plan.rate, "Images per second of one device, for the times")
      ->check(CLI::PositiveNumber);
  plan->add_option("--images", to_plan.images, "Training images, instead of counting them");
  plan->add_option("--val-images", to_plan.val_images, "Validation images, instead of counting them");
  takes_json(plan);

  EvalArguments to_eval;
  CLI::App* eval =
      takes_config(app.add_subcommand("eval", "Validate a checkpoint over the whole of data.val"),
                   "Configuration file (TOML)");
  eval->add_option("--checkpoint", to_eval.checkpoint, "Weights: .ckpt, .safetensors, .pt or .pth")
      ->required();
  eval->add_flag("--ema", to_eval.averaged, "The averaged weights (optim.ema) instead of the trained ones");
  takes_json(eval);

  RangeOptions range;
  CLI::App* lr_find =
      takes_config(app.add_subcommand("lr-find", "Find a learning rate: train a little, with a rising rate"),
                   "Configuration file (TOML)");
  lr_find->add_option("--low", range.low, "First optim.lr")->capture_default_str();
  lr_find->add_option("--high", range.high, "Last optim.lr")->capture_default_str();
  lr_find->add_option("--steps", range.steps, "Optimiser steps at most")->capture_default_str();
  takes_json(lr_find);
  takes_plot(lr_find);

  std::string checkpoint, weights;
  bool averaged = false;
  CLI::App* export_weights =
      app.add_subcommand("export", "Write a checkpoint's weights for Python, with torchvision's names");
  export_weights->add_option("checkpoint", checkpoint, "Checkpoint file (.ckpt)")->required();
  export_weights->add_option("-o,--output", weights, "File to write: .safetensors, .pt or .pth")->required();
  export_weights->add_flag("--ema", averaged, "The averaged weights (optim.ema) instead of the trained ones");

  CLI::App* doctor =
      app.add_subcommand("doctor", "Check this machine, and a configuration with one real step");
  takes_config(doctor, "Configuration file (TOML)")->get_option("config")->required(false);
  takes_json(doctor);

  TuneArguments to_tune;
  std::optional<double> trial;
  CLI::App* tune =
      takes_config(app.add_subcommand("tune", "Try batch sizes, threads and read-ahead in short real runs"),
                   "Configuration file (TOML)");
  tune->add_option("--minutes", to_tune.minutes, "Time for all trials together")
      ->capture_default_str()
      ->check(CLI::Range(0.05, 10000.0));
  tune->add_option("-o,--output", to_tune.output, "Write the chosen option as a configuration")
      ->type_name("FILE");
  tune->add_option("--choose", to_tune.choose, "conservative, balanced or aggressive")
      ->capture_default_str()
      ->check(CLI::IsMember({"conservative", "balanced", "aggressive"}));
  tune->add_flag("--keep-total", to_tune.keep_total,
                 "Keep the total batch: other batches get another train.accumulate");
  tune->add_option("--trial", trial, "One trial of so many seconds, as a line of JSON")->group("");
  takes_json(tune);

  SynthOptions synth;
  CLI::App* make = app.add_subcommand("synth", "Make a labelled, learnable JPEG tree for trying things out");
  make->add_option("dir", synth.dir, "Gets train/<class>/*.JPEG and val/<class>/*.JPEG")->required();
  make->add_option("--classes", synth.classes, "Classes")->capture_default_str();
  make->add_option("--train-per-class", synth.train_per_class, "Training images of each class")
      ->capture_default_str();
  make->add_option("--val-per-class", synth.val_per_class, "Validation images of each class")
      ->capture_default_str();
  make->add_option("--size", synth.size, "Longer side of most images, in pixels")->capture_default_str();
  make->add_option("--seed", synth.seed, "The same seed gives the same files")->capture_default_str();

  StepBench step_bench;
  CLI::App* bench = app.add_subcommand("bench", "Measure a part of the run by itself")->require_subcommand(1);
  CLI::App* bench_step =
      takes_config(bench->add_subcommand("step", "The training step, on a batch in memory: no data is read"),
                   "Configuration file (TOML)");
  bench_step->add_option("--steps", step_bench.steps, "Steps to measure")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  bench_step->add_option("--warm", step_bench.warm, "Steps before, which do not count")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  bench_step->add_flag("--json", step_bench.json, "Print one JSON object");

  DataBench data_bench;
  CLI::App* bench_data =
      takes_config(bench->add_subcommand(
                       "data", "The data path against a bare full decode of the same files; needs no device"),
                   "Configuration file (TOML)");
  bench_data->add_option("--threads", data_bench.threads, "Decode threads, and CPUs to keep to; 0: all")
      ->check(CLI::Range(0, 1024));
  bench_data->add_option("--images", data_bench.images, "Images in a round")->capture_default_str();
  bench_data->add_option("--rounds", data_bench.rounds, "Rounds of both, in turns")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  bench_data->add_flag("--json", data_bench.json, "Print one JSON object");

  ShowArguments to_show;
  CLI::App* show = takes_config(app.add_subcommand("show", "One batch as the network will get it"),
                                "Configuration file (TOML)");
  show->add_option("--split", to_show.split, "train or val")->check(CLI::IsMember({"train", "val"}));
  show->add_option("--batch", to_show.batch, "Which, from 0")->capture_default_str();
  show->add_option("--npy", to_show.npy, "Write pixels as a NumPy array, and labels beside it")
      ->type_name("FILE.npy");
  show->add_option("--sheet", to_show.sheet, "Write a contact sheet with labels")->type_name("FILE.jpg");
  FeedBench feed;
  CLI::App* bench_feed = takes_config(
      bench->add_subcommand("feed", "The data path into a consumer of a given speed; needs no device"),
      "Configuration file (TOML)");
  const auto feed_number = [&](const char* name, double& value, const char* what, CLI::Range range) {
    bench_feed->add_option(name, value, what)->capture_default_str()->check(range);
  };
  feed_number("--rate", feed.rate, "Images/s that the consumer takes; 0: as fast as they come", {0.0, 1e9});
  feed_number("--latency", feed.storage.latency_ms, "Milliseconds added to each file", {0.0, 1e6});
  feed_number("--bandwidth", feed.storage.megabytes_per_s, "MB/s of all reads together; 0: as it is",
              {0.0, 1e9});
  feed_number("--seconds", feed.seconds, "Measured", {0.1, 1e6});
  feed_number("--warmup", feed.warmup, "Seconds before, which do not count", {0.0, 1e6});
  bench_feed->add_flag("--headspace", feed.headspace, "Give the first batches again and again instead");
  bench_feed->add_flag("--json", feed.json, "Print one JSON object");

  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  }
  try {
    if (version) {
      std::cout << version_text() << "\n";
      return exit_done;
    }
    if (*train) return train_command(arguments, to_train);
    if (*config) {
      if (!reference_only && arguments.file.empty()) {
        std::cerr << "sluice: config: give a configuration file, or --reference\n";
        return exit_usage;
      }
      return config_command(arguments, reference_only);
    }
    if (*graph) return graph_command(arguments, format, output);
    if (*schedule) return schedule_command(arguments, steps_per_epoch, devices, as_json, plot_file);
    to_plan.json = as_json;
    if (*plan) return plan_command(arguments, to_plan);
    to_eval.json = as_json;
    if (*eval) return eval_command(arguments, to_eval);
    if (*lr_find) return lr_find_command(arguments, {range, as_json, plot_file});
    if (*export_weights) return export_command(checkpoint, weights, averaged);
    if (*doctor) return doctor_command(arguments, as_json);
    to_tune.json = as_json;
    if (*tune) return trial ? tune_trial_command(arguments, *trial) : tune_command(arguments, to_tune);
    if (*make) return synth_command(synth);
    if (*bench_data) return bench_data_command(arguments, data_bench);
    if (*show) return show_command(arguments, to_show);
    if (*bench_feed) return bench_feed_command(arguments, feed);
    if (*bench_step) return bench_step_command(arguments, step_bench);
  } catch (const std::exception& error) {
    complain(as_error("", error));
    return exit_failed;
  }
  std::cout << app.help();
  return count > 1 ? exit_usage : exit_done;
}

}  // namespace

int main(int count, char** words) {
  if (!fill_standard_descriptors()) return exit_failed;  // and there is nobody to tell
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a write error like any other
  static char results[256 * 1024];
  if (isatty(STDOUT_FILENO) == 0)  // written in one go at the end, so that what fails has its reason
    std::setvbuf(stdout, results, _IOFBF, sizeof results);
  return leave(run(count, words));
}
