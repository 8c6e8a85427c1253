// Know before: what a configuration will take, next to what a machine has. Needs no device and no data.
#include <filesystem>
#include <iostream>

#include "base/json_text.hpp"
#include "cli/commands.hpp"
#include "model/train/train_step.hpp"
#include "run/plan/plan.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

struct PlanArguments {
  ConfigArguments config;
  std::string machine;  // a file; empty: this machine
  unsigned devices = 1, nodes = 1;
  double rate = 0;  // images/s of one device; 0: not known
  std::optional<std::uint64_t> images, val_images;
  bool json = false;
};

// Free below a folder that may not be there yet.
std::optional<std::uint64_t> free_below(fs::path folder) {
  folder = fs::absolute(folder);
  while (!fs::exists(folder) && folder.has_relative_path()) folder = folder.parent_path();
  std::error_code unknown;
  const fs::space_info space = fs::space(folder, unknown);
  if (unknown) return std::nullopt;
  return space.available;
}

// The GPU that is here, if there is one that this build can use.
void add_gpu(PlanMachine& machine) {
  const Result<std::shared_ptr<Device>> gpu = open_device("cuda");
  if (!gpu) return;
  machine.gpus = 1;
  machine.gpu_memory = (*gpu)->memory().total;
  machine.gpu_name = "GPU " + (*gpu)->bus_id();
}

Result<PlanRequest> request_of(const Config& config, const std::string& name, const PlanArguments& asked) {
  PlanRequest r;
  r.config = config;
  r.config_name = name;
  r.devices = asked.devices;
  r.nodes = asked.nodes;
  r.rate = asked.rate;
  r.device = config.model.device;
  if (asked.machine.empty()) {
    r.machine.host = this_machine();
    if (r.device == "auto") {
      const Result<std::string> here = resolve_device(r.device);
      r.device = here ? *here : "cpu";
    }
    if (r.device == "cuda") add_gpu(r.machine);
    r.disk_free = free_below(config.log.dir);
  } else {
    Result<PlanMachine> machine = load_machine(asked.machine);
    if (!machine) return machine.error();
    r.machine = std::move(*machine);
    if (r.device == "auto") r.device = r.machine.gpus > 0 ? "cuda" : "cpu";
  }
  Result<PlanData> data = plan_data(config, {asked.images, asked.val_images});
  if (!data) return data.error();
  r.data = std::move(*data);
  return r;
}

}  // namespace

// What the configuration will take, next to what a machine has; exit_usage if it does not fit.
static int plan_command(const ConfigArguments& arguments, const PlanArguments& asked) {
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  const Result<PlanRequest> request = request_of(*config, arguments.file, asked);
  if (!request) {
    complain(request.error());
    return exit_usage;
  }
  const Plan plan = make_plan(*request);
  if (!asked.json) {
    std::cout << plan_text(plan);
  } else {
    std::cout << json_text(plan_json(plan)) << "\n";
    for (const Error& problem : plan.problems) complain(problem);
  }
  return plan.fits() ? exit_done : exit_usage;
}

Run add_plan(Options& to) {
  const auto asked = std::make_shared<PlanArguments>();
  to.config(asked->config).required();
  to.option("--machine", &asked->machine, "Plan for this machine (configs/machines) instead of this one")
      .type("FILE");
  to.option("--devices", &asked->devices, "Devices of each host, one rank for each").range(1, 1024);
  to.option("--nodes", &asked->nodes, "Hosts").range(1, 100'000);
  to.option("--rate", &asked->rate, "Images per second of one device, for the times").positive();
  to.option("--images", &asked->images, "Training images, instead of counting them");
  to.option("--val-images", &asked->val_images, "Validation images, instead of counting them");
  to.json(asked->json);
  return [asked] { return plan_command(asked->config, *asked); };
}

}  // namespace sluice
