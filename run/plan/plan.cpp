#include "run/plan/plan.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "run/config/step_options.hpp"
#include "run/plan/advice.hpp"

namespace sluice {
namespace {

// The forward pass alone takes about a third of a training step.
constexpr double validation_share = 1.0 / 3;

Result<RunPlan> run_of(const PlanRequest& r, const Config& config, unsigned devices) {
  return plan_run(config, r.machine.host, r.device, r.data.index_bytes, devices, r.data.classes);
}

NetworkRun network_run(const PlanRequest& r, unsigned devices) {
  return {r.device, r.data.classes, devices * r.nodes};
}

// One rank of the host copies checkpoints, the others do not.
Room ram_of(const PlanRequest& r, MemoryPlan memory, unsigned devices) {
  Room room{std::move(memory), 0, r.machine.host.memory};
  room.total = devices * room.memory.total() - (devices - 1) * room.memory.of("checkpoint");
  return room;
}

Room vram_of(const PlanRequest& r, const Config& config, unsigned devices) {
  Room room{device_memory(config, network_run(r, devices)), 0, 0};
  room.total = room.memory.total();
  if (room.total > 0) room.available = r.machine.gpu_memory;
  return room;
}

void count_steps(Scale& scale, const PlanRequest& r) {
  const Config& c = r.config;
  RunShape shape;
  shape.train_images = r.data.train_images;
  shape.val_images = r.data.val_images;
  shape.batch = static_cast<std::uint32_t>(c.train.batch);
  shape.ranks = scale.devices * r.nodes;
  shape.accumulate = static_cast<std::uint32_t>(c.train.accumulate);
  shape.epochs = static_cast<std::uint32_t>(c.train.epochs);
  shape.max_steps = static_cast<std::uint64_t>(c.train.max_steps);
  const Result<Sequence> sequence = Sequence::make(shape);
  if (!sequence) {
    if (!scale.refused) scale.refused = sequence.error();
    return;
  }
  scale.steps_per_epoch = sequence->steps_per_epoch();
  scale.val_batches = sequence->val_batches();
  scale.steps = scale.steps_per_epoch * shape.epochs;
  if (shape.max_steps > 0) scale.steps = std::min(scale.steps, shape.max_steps);
  if (r.rate <= 0) return;
  const double all = r.rate * shape.ranks,
               step = static_cast<double>(shape.global_batch() * shape.accumulate);
  const double validation = validation_share * static_cast<double>(shape.val_images) / all;
  const auto per_epoch = static_cast<double>(scale.steps_per_epoch), steps = static_cast<double>(scale.steps);
  scale.epoch_seconds = per_epoch * step / all + validation;
  scale.run_seconds = steps * step / all + validation * steps / per_epoch;
}

Scale scale_of(const PlanRequest& r, const Config& config, unsigned devices) {
  Scale scale;
  scale.devices = devices;
  Result<RunPlan> run = run_of(r, config, devices);
  if (!run) scale.refused = run.error();
  scale.ram = ram_of(r, run ? run->memory : memory_beside(config, network_run(r, devices)), devices);
  scale.vram = vram_of(r, config, devices);
  scale.lr = peak_rate(schedule_options(config, devices * r.nodes));
  count_steps(scale, r);
  return scale;
}

// Into RAM and VRAM both: advice that helps one and is refused for the other is none.
bool fits(const PlanRequest& r, const Config& config) {
  const Result<RunPlan> run = run_of(r, config, r.devices);
  return run && ram_of(r, run->memory, r.devices).fits() && vram_of(r, config, r.devices).fits();
}

// `first`: what else the configuration has been changed in.
std::string change_of(const PlanRequest& r, const Config& config, const std::string& first = "") {
  const std::string change = what_to_change(config, [&](const Config& changed) { return fits(r, changed); });
  return change.empty() ? "no smaller batch, image or network fits here: it takes more memory"
                        : first + change;
}

// The data path is refused: by a budget that is too small for it, or because there is no memory for one.
Error refused_data_path(const PlanRequest& r, const Scale& here) {
  const std::size_t mib = 1024 * 1024;
  const std::size_t least =
      r.devices * least_ram(r.config, r.machine.host, r.device, r.data.index_bytes, r.devices);
  Config enough = r.config;
  enough.budget.ram = Size{(least + mib - 1) / mib * mib};
  const bool helps = fits(r, enough);
  if (helps && r.config.budget.ram) return *here.refused;
  Config automatic = r.config;
  automatic.budget.ram.reset();
  std::string hint = change_of(r, automatic, r.config.budget.ram ? "--set budget.ram=auto and with it " : "");
  if (helps)
    hint = "--set budget.ram=" + std::to_string(enough.budget.ram->bytes / mib) +
           "MiB fits, with little to spare, or " + hint;
  return {"plan", "RAM",
          "does not fit: " + readable_bytes(here.ram.total) + " of " + readable_bytes(here.ram.available) +
              " are needed beside the data path, which needs at least " + readable_bytes(least) +
              (r.config.budget.ram ? ", more than budget.ram"
                                   : " and, with budget.ram = \"auto\", as much to spare"),
          hint};
}

void judge_ram(Plan& plan) {
  const PlanRequest& r = plan.request;
  const Scale& here = plan.here;
  if (!plan.run) return plan.overruns.push_back(refused_data_path(r, here));
  if (here.ram.fits()) return;
  const std::size_t over = here.ram.total - here.ram.available;
  std::string hint = change_of(r, r.config);
  if (r.config.budget.ram) {
    Config automatic = r.config;
    automatic.budget.ram.reset();
    if (const Result<RunPlan> run = run_of(r, automatic, r.devices); run && fits(r, automatic))
      hint = "--set budget.ram=auto would take " + readable_bytes(run->pipeline.split.budget) +
             (r.devices > 1 ? " for each rank" : "") + ", or " + hint;
  }
  plan.overruns.push_back({"plan", "RAM",
                           "does not fit: " + readable_bytes(here.ram.total) + " of " +
                               readable_bytes(here.ram.available) + ", " + readable_bytes(over) + " too much",
                           hint});
}

void judge_vram(Plan& plan) {
  const PlanRequest& r = plan.request;
  const Room& vram = plan.here.vram;
  if (vram.fits()) return;
  plan.overruns.push_back({"plan", "VRAM",
                           "does not fit: " + readable_bytes(vram.total) + " of " +
                               readable_bytes(vram.available) + ", " +
                               readable_bytes(vram.total - vram.available) + " too much",
                           change_of(r, r.config)});
}

void judge_devices(Plan& plan) {
  const PlanRequest& r = plan.request;
  if (r.device == "cuda" && !r.machine.name.empty() && r.devices > r.machine.gpus)
    plan.problems.push_back({"plan", "--devices " + std::to_string(r.devices),
                             printable(r.machine.name) + " has " + std::to_string(r.machine.gpus) +
                                 (r.machine.gpus == 1 ? " GPU" : " GPUs"),
                             r.machine.gpus > 0 ? "" : "--set model.device=cpu"});
}

void judge_rest(Plan& plan) {
  const PlanRequest& r = plan.request;
  if (plan.run && plan.here.refused) plan.problems.push_back(*plan.here.refused);  // too few images
  if (r.device == "cpu" && r.config.model.precision == "fp16")
    plan.problems.push_back({"plan", "model.precision", "fp16 needs a GPU, and this plan is for the CPU",
                             "--set model.precision=fp32, or plan for a machine with a GPU (--machine)"});
  const std::size_t disk = plan.checkpoint * plan.checkpoint_files;
  if (r.disk_free && disk > *r.disk_free)
    plan.problems.push_back(
        {"plan", "disk",
         "checkpoints take " + readable_bytes(disk) + " of " + readable_bytes(*r.disk_free) + " free",
         "make room, set log.dir to another disk, or lower checkpoint.keep"});
}

}  // namespace

Plan make_plan(const PlanRequest& request) {
  Plan plan{request, scale_of(request, request.config, request.devices), {}, {}, 0, 0, {}, {}, {}};
  const PlanRequest& r = plan.request;
  if (Result<RunPlan> run = run_of(r, r.config, r.devices); run) {
    plan.loader = loader_memory(r.config, run->pipeline.decode_threads);
    plan.run = std::move(*run);
  } else {
    const auto threads =
        static_cast<unsigned>(r.config.pipeline.decode_threads.value_or(r.machine.host.cpus));
    plan.loader = loader_memory(r.config, threads);
  }
  plan.checkpoint = checkpoint_bytes(r.config, r.data.classes);
  plan.checkpoint_files = checkpoint_files(r.config);
  for (const unsigned devices : {1u, 2u, 4u, 8u}) plan.scaling.push_back(scale_of(r, r.config, devices));
  judge_ram(plan);
  judge_vram(plan);
  plan.problems = plan.overruns;
  judge_devices(plan);
  judge_rest(plan);
  return plan;
}

Status within_memory(const Plan& plan, bool with_table) {
  const Config& config = plan.request.config;
  if (plan.overruns.empty() || !config.budget.enforce) return Done{};
  Error refused = plan.overruns.front();
  if (refused.stage == "budget") return refused;  // of the data path alone, with a table of its own
  if (with_table) refused.cause += "\n" + memory_text(plan) + " ";
  for (std::size_t i = 1; i < plan.overruns.size(); ++i) refused.hint += "\n  " + plan.overruns[i].text();
  if (plan.run || !config.budget.ram) refused.hint += "; budget.enforce = false starts it all the same";
  return refused;
}

}  // namespace sluice
