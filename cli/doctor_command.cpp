#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/batch_run.hpp"
#include "cli/checklist.hpp"
#include "cli/commands.hpp"
#include "model/nvml.hpp"
#include "model/version.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t GiB = std::size_t{1} << 30;

std::string seconds_since(std::chrono::steady_clock::time_point begin) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s",
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return text;
}

void look_at_machine(Checklist& list) {
  const Machine machine = this_machine();
  const std::string cpus = std::to_string(machine.cpus) + (machine.cpus == 1 ? " CPU" : " CPUs");
  machine.cpus > 1 ? list.ok("CPUs", cpus + " may be used")
                   : list.warn("CPUs", "only " + cpus + " may be used",
                               "reading, decoding and training will take turns; raise the CPU limit");
  const std::string memory = readable_bytes(machine.memory) + " may be taken (" + machine.memory_limit + ")";
  machine.memory >= 4 * GiB ? list.ok("memory", memory)
                            : list.warn("memory", memory, "end other programs, or raise the limit");

  std::string pages;
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::getline(in, pages);
  if (pages.find("[never]") != std::string::npos)
    list.warn("huge pages", "switched off",
              "steps on the CPU are slower; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  else
    list.ok("huge pages", pages.empty() ? "the kernel does not tell" : pages);

  rlimit locked{};
  getrlimit(RLIMIT_MEMLOCK, &locked);
  list.ok("locked memory", locked.rlim_cur == RLIM_INFINITY
                               ? "no limit"
                               : "at most " + readable_bytes(locked.rlim_cur) +
                                     " by the process itself; the GPU's driver pins batches on its own");
}

// What a run would compute on.
void look_at_device(Checklist& list, const std::string& asked) {
  const Result<std::string> device = resolve_device(asked);
  if (!device) return list.fail("device", device.error());
  if (const std::string note = device_note(asked, *device); !note.empty())
    return list.warn("device", note, "check the driver with nvidia-smi");
  if (*device == "cpu") return list.ok("device", "cpu");
  const Result<std::shared_ptr<Device>> opened = open_device(*device);
  if (!opened) return list.fail("device", opened.error());
  const Device::Memory memory = (*opened)->memory();
  const std::unique_ptr<Nvml> driver = Nvml::open((*opened)->bus_id());
  const std::string version = driver ? driver->driver_version() : "";
  list.ok("device", "GPU " + (*opened)->bus_id() + ", " + readable_bytes(memory.free) + " of " +
                        readable_bytes(memory.total) + " free, driver " +
                        (version.empty() ? "of unknown version" : version) + ", built for CUDA " +
                        versions().cuda);
}

// Whether `bytes` can be written below a folder that may not be there yet.
void look_at_disk(Checklist& list, fs::path folder, std::size_t bytes) {
  folder = fs::absolute(folder);
  while (!fs::exists(folder) && folder.has_relative_path()) folder = folder.parent_path();
  std::error_code unknown;
  const fs::space_info space = fs::space(folder, unknown);
  if (unknown) return list.fail("disk", folder.string() + ": " + unknown.message(), "set log.dir");
  const std::string found = readable_bytes(space.available) + " free below " + folder.string() +
                            ", checkpoints take about " + readable_bytes(bytes);
  space.available > bytes + bytes / 10
      ? list.ok("disk", found)
      : list.fail("disk", found, "make room, set log.dir to another disk, or lower checkpoint.keep");
}

// The run's own data path and network, for one optimiser step. Lives on step's thread between begin and over.
class OneStep {
 public:
  explicit OneStep(const StepOptions& options) : options_(options) {
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
    images_ += static_cast<std::size_t>(given.batch.count);
    if (Status done = step_->train(std::move(given.batch), /*lr=*/0.0); !done) return done.error();
    if (++batches_ < options_.accumulate) return true;
    const Result<StepSums> sums = step_->read_back();
    if (!sums) return sums.error();
    loss_ = sums->train.count > 0 ? sums->train.loss / static_cast<double>(sums->train.count) : NAN;
    return true;
  }

  void over() { step_.reset(); }

  [[nodiscard]] std::size_t parameters() const { return parameters_; }
  [[nodiscard]] std::size_t images() const { return images_; }
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] const std::vector<std::string>& bad() const { return bad_; }

 private:
  StepOptions options_;
  std::optional<Step> step_;
  std::size_t parameters_ = 0, images_ = 0;
  int batches_ = 0;
  double loss_ = NAN;
  std::vector<std::string> bad_;
};

// Trains one step as the run would. The number of parameters, 0 if it did not come that far.
std::size_t train_one_step(Checklist& list, const Config& config) {
  auto begin = std::chrono::steady_clock::now();
  Result<BatchRun> run = BatchRun::training(config, static_cast<std::uint64_t>(config.train.accumulate));
  if (!run) return list.fail("data and plan", run.error()), 0;
  list.ok("data and plan", std::to_string(run->classes()) + " classes, found in " + seconds_since(begin) +
                               "; the data path fits its budget of " + readable_bytes(run->budget()));
  begin = std::chrono::steady_clock::now();
  OneStep step(run->step_options());
  std::optional<Error> failure;
  const int code = run->run({[&] { return step.begin(); },
                             [&](const BatchPlan&, OnDevice&& batch) { return step.batch(std::move(batch)); },
                             [&] { step.over(); }},
                            &failure);
  if (failure) return list.fail("one step", *failure), step.parameters();
  if (code != exit_done) return list.fail("one step", "stopped by a signal", ""), step.parameters();
  if (!step.bad().empty())
    list.warn("images",
              std::to_string(step.bad().size()) + " of " + std::to_string(step.images()) +
                  " cannot be used: " + step.bad().front(),
              "a run replaces them, up to data.max_bad; mend or exclude them");
  else
    list.ok("images", std::to_string(step.images()) + " read and decoded");
  char loss[32];
  std::snprintf(loss, sizeof loss, "%.4f", step.loss());
  std::isfinite(step.loss())
      ? list.ok("one step", "of " + std::to_string(step.images()) + " images in " + seconds_since(begin) +
                                ", start of everything included; loss " + loss)
      : list.fail("one step", "its loss is not finite", "try model.precision = \"fp32\"");
  return step.parameters();
}

void look_at_run(Checklist& list, const Config& config) {
  const std::size_t parameters = train_one_step(list, config);
  const std::size_t kinds = config.optim.ema > 0 ? 3 : 2;  // weights, momenta, averages
  const auto files = static_cast<std::size_t>(config.checkpoint.keep) + 3;
  if (parameters > 0) look_at_disk(list, config.log.dir, files * kinds * parameters * sizeof(float));
}

}  // namespace

int doctor_command(const ConfigArguments& arguments, bool json) {
  Checklist list;
  list.ok("build", version_text());
  look_at_machine(list);
  if (arguments.file.empty()) {
    look_at_device(list, "auto");
  } else {
    const Loaded loaded = load_config(arguments.file, arguments.sets);
    for (const Error& error : loaded.errors) list.fail("configuration", error);
    if (loaded.errors.empty()) {
      list.ok("configuration", arguments.file);
      look_at_device(list, loaded.config.model.device);
      if (!list.failed()) look_at_run(list, loaded.config);
    }
  }
  if (json)
    std::cout << list.json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  else
    std::cout << list.table();
  return list.failed() ? exit_failed : exit_done;
}

}  // namespace sluice
