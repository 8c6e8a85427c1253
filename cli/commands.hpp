// One function for each sub-command; main.cpp only parses the words. Each returns the exit code: 0 done, 1
// the run failed, 2 bad usage or configuration, 129/130/143 stopped by a signal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/device/version.hpp"
#include "run/config/config.hpp"
#include "run/data/slow_storage.hpp"
#include "run/data/synth.hpp"
#include "run/data/synth_tree.hpp"
#include "run/launch/place.hpp"
#include "run/session/ending.hpp"
#include "run/train/rate_search.hpp"

namespace sluice {

struct TrainArguments {
  std::string resume;
  LaunchArguments launch;
  std::vector<std::string> words;  // the whole command line, for ranks that are started
};
int train_command(const ConfigArguments& arguments, const TrainArguments& asked);
int config_command(const ConfigArguments& arguments, bool reference_only);
// `what`: a configuration or a run folder.
int graph_command(ConfigArguments what, const std::string& format, const std::string& output);
// The learning rate over a run on so many devices in all. `steps_per_epoch`: 0 counts the images; `output`: a
// plot, if not empty.
int schedule_command(const ConfigArguments& arguments, std::int64_t steps_per_epoch, std::int64_t devices,
                     bool json, const std::string& output);

struct PlanArguments {
  std::string machine;  // a file; empty: this machine
  unsigned devices = 1, nodes = 1;
  double rate = 0;  // images/s of one device; 0: not known
  std::optional<std::uint64_t> images, val_images;
  bool json = false;
};
// What the configuration will take, next to what a machine has; exit_usage if it does not fit.
int plan_command(const ConfigArguments& arguments, const PlanArguments& asked);

struct EvalArguments {
  std::string checkpoint;
  bool averaged = false, json = false;
};
int eval_command(const ConfigArguments& arguments, const EvalArguments& asked);

struct LrFindArguments {
  RangeOptions range;
  bool json = false;
  std::string output;  // a plot, if not empty
};
int lr_find_command(const ConfigArguments& arguments, const LrFindArguments& asked);
// Writes a checkpoint's weights for Python.
int export_command(const std::string& checkpoint, const std::string& output, bool averaged);
// A pre-flight checklist of this machine and, if a file is given, of a configuration with one real step.
int doctor_command(const ConfigArguments& arguments, bool json);
struct TuneArguments {
  double minutes = 5;
  std::string output;               // a configuration, if not empty
  std::string choose = "balanced";  // which option that is
  bool keep_total = false, json = false;
};
// Short trials within the plan, and what they come to.
int tune_command(const ConfigArguments& arguments, const TuneArguments& asked);
// One of them, in a process of its own: so many seconds. With 0, only what the device has.
int tune_trial_command(const ConfigArguments& arguments, double seconds);
int synth_command(const SynthOptions& options);
struct StepBench {
  int steps = 5, warm = 2;
  bool json = false;
};
// The time of a training step by itself, on a batch of noise in memory.
int bench_step_command(const ConfigArguments& arguments, const StepBench& bench);
struct DataBench {
  unsigned threads = 0;  // 0: all CPUs
  std::uint64_t images = 1536;
  int rounds = 5;
  bool json = false;
};
// The data path against a bare full decode of the same files.
int bench_data_command(ConfigArguments arguments, const DataBench& bench);

struct ShowArguments {
  std::string split = "train";
  std::uint64_t batch = 0;
  std::string npy, sheet;  // files to write, if not empty
};
// One batch as the network will get it.
int show_command(const ConfigArguments& arguments, const ShowArguments& asked);

struct FeedBench {
  double rate = 0;  // images/s that the consumer takes; 0: as fast as they come
  StorageSpeed storage;
  double seconds = 20, warmup = 10;
  bool headspace = false, json = false;  // headspace: batches in memory, to see the consumer's ceiling
};
// How well the data path feeds a consumer of a given speed.
int bench_feed_command(ConfigArguments arguments, const FeedBench& bench);
// The configuration, or nothing after its errors have been printed.
[[nodiscard]] std::optional<Config> load_or_complain(const ConfigArguments& arguments);
void complain(const Error& error);  // "sluice: ..." on stderr
// The exit code of a run, after its failure has been printed.
[[nodiscard]] int told(const Ending& ending);
// The exit code of a command that comes to its end with `code`: results that could not be written to stdout
// make a failure of success.
[[nodiscard]] int with_output_written(int code);

// Data of one's own (--set data.train=DIR) are not to be made, whatever a preset makes.
void use_own_data(ConfigArguments& arguments);

}  // namespace sluice
