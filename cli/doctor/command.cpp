#include <fmt/core.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/doctor/build.hpp"
#include "cli/doctor/device.hpp"
#include "cli/doctor/disk.hpp"
#include "cli/doctor/feed.hpp"
#include "cli/doctor/images.hpp"
#include "cli/doctor/machine.hpp"
#include "cli/doctor/step.hpp"
#include "cli/doctor/storage.hpp"
#include "model/device/version.hpp"
#include "nodes/jpeg/library.hpp"
#include "run/data/synth_tree.hpp"
#include "run/launch/rendezvous.hpp"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

// Some looks take seconds: people want to know at what.
void tell(const std::string& what) { std::cerr << "sluice: doctor: " << what << " ...\n"; }

std::string count(std::size_t n) { return std::to_string(n); }

std::optional<DataSets> look_at_data(Checklist& list, const Config& config) {
  if (Status made = make_synth_tree(config); !made) return list.fail("data set", made.error()), std::nullopt;
  const auto begin = Clock::now();
  Result<DataSets> sets = scan_data(config);
  if (!sets) return list.fail("data set", sets.error()), std::nullopt;
  const std::string time =
      fmt::format("{:.1f} s", std::chrono::duration<double>(Clock::now() - begin).count());
  list.ok("data set", count(sets->train->size()) + " training and " + count(sets->val->size()) +
                          " validation images, " + count(sets->train->class_names().size()) +
                          " classes; listed in " + time);
  return std::move(*sets);
}

std::int64_t classes_of(const DataSets& sets) {
  return static_cast<std::int64_t>(sets.train->class_names().size());
}

void look_at_budget(Checklist& list, const RunPlan& plan, const Machine& machine) {
  const std::string found = "the data path fits its " + readable_bytes(plan.pipeline.split.budget) + " (" +
                            plan.budget_source + "); the process takes about " +
                            readable_bytes(plan.memory.total()) + " of " + readable_bytes(machine.memory);
  plan.memory.total() <= machine.memory
      ? list.ok("RAM budget", found)
      : list.fail("RAM budget", found, "sluice plan tells who takes what; lower train.batch or budget.ram");
}

// All that needs the images.
void look_at_run(Checklist& list, const Config& config, const std::string& device, DataSets sets) {
  const Machine machine = this_machine();
  const Result<RunPlan> plan =
      plan_run(config, machine, device.empty() ? "cpu" : device, sets.index_bytes(), 1, classes_of(sets));
  if (!plan)
    list.fail("RAM budget", plan.error());
  else
    look_at_budget(list, *plan, machine);
  tell("reading some of the images");
  StorageReport storage;
  if (const auto* folder = dynamic_cast<const ImageFolder*>(sets.train.get())) {  // reads this host's files
    storage = measure_storage(*folder, plan ? plan->pipeline.read_threads : 16);
    look_at_storage(list, storage);
  } else {
    list.ok("storage", "not measured: the images are not files of this host");
  }
  if (!plan) return;
  const ImageSamples images = sample_both(sets, plan->data);
  look_at_images(list, images, config.data.max_bad);
  if (device.empty()) return;
  tell("training one step");
  Result<BatchRun> run =
      BatchRun::training(config, 2 * static_cast<std::uint64_t>(config.train.accumulate), std::move(sets));
  if (!run) return list.fail("one step", run.error());
  FeedFigures feed;
  feed.step = look_at_step(list, *run);
  feed.decode_threads = plan->pipeline.decode_threads;
  feed.storage = storage.many.failure ? 0 : storage.many.images_per_s();
  feed.decode = images.train.ms > 0 ? 1e3 / images.train.ms * feed.decode_threads : 0;
  feed.gpu = device != "cpu";
  look_at_feed(list, feed);
}

void look_at_config(Checklist& list, const ConfigArguments& arguments) {
  const Loaded loaded = load_config(arguments.file, arguments.sets);
  for (const Error& error : loaded.errors) list.fail("configuration", error);
  if (!loaded.errors.empty()) return;
  const Config& config = loaded.config;
  list.ok("configuration", arguments.file);
  const std::string device = look_at_device(list, config.model.device);
  look_at_exchange(list, device, versions());
  std::int64_t classes = 1000;
  if (std::optional<DataSets> sets = look_at_data(list, config)) {
    classes = classes_of(*sets);
    look_at_run(list, config, device, std::move(*sets));
  }
  look_at_disk(list, config.log.dir, checkpoint_files(config) * checkpoint_bytes(config, classes));
}

}  // namespace

// A pre-flight checklist of this machine and, if a file is given, of a configuration with one real step.
static int doctor_command(const ConfigArguments& arguments, bool json) {
  Checklist list;
  list.ok("build", version_text());
  look_at_machine(list, this_machine(), this_process());
  look_at_driver(list, gpu_driver(), versions());
  look_at_jpeg(list, loaded_libjpeg());
  look_at_rendezvous(list, this_environment());
  if (arguments.file.empty())
    look_at_exchange(list, look_at_device(list, "auto"), versions());
  else
    look_at_config(list, arguments);
  if (json)
    std::cout << json_text(list.json()) << "\n";
  else
    std::cout << list.table();
  return list.failed() ? exit_failed : exit_done;
}

Run add_doctor(Options& to) {
  struct Asked {
    ConfigArguments config;
    bool json = false;
  };
  const auto asked = std::make_shared<Asked>();
  to.config(asked->config);
  to.json(asked->json);
  return [asked] { return doctor_command(asked->config, asked->json); };
}

}  // namespace sluice
