// What a configuration will take on a machine, next to what the machine has: memory by owner, steps, time,
// disk, and the same on more devices. Computed without data, device or torch; the same input gives the same
// plan.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "run/plan/data.hpp"
#include "run/plan/machine_file.hpp"
#include "run/plan/run_plan.hpp"

namespace sluice {

struct PlanRequest {
  Config config;
  std::string config_name;
  PlanMachine machine;
  std::string device = "cpu";  // "cpu" or "cuda"
  PlanData data;
  unsigned devices = 1, nodes = 1;         // devices of each of the hosts
  double rate = 0;                         // images/s of one device; 0: not known
  std::optional<std::uint64_t> disk_free;  // where checkpoints go
};

// Memory next to what there is.
struct Room {
  MemoryPlan memory;          // of one rank, or of one device
  std::size_t total = 0;      // of all that share what is available
  std::size_t available = 0;  // 0: not known
  [[nodiscard]] bool fits() const { return available == 0 || total <= available; }
};

// On so many devices of a host.
struct Scale {
  unsigned devices = 1;
  Room ram, vram;  // vram: nothing on the CPU
  double lr = 0;   // at its highest
  std::uint64_t steps_per_epoch = 0, val_batches = 0, steps = 0;
  double epoch_seconds = 0, run_seconds = 0;  // 0: not known
  std::optional<Error> refused;               // by the budget or by the number of images
  [[nodiscard]] bool fits() const { return !refused && ram.fits() && vram.fits(); }
};

struct Plan {
  PlanRequest request;
  Scale here;
  std::optional<RunPlan> run;  // none where budget.ram is refused
  LoaderMemory loader;         // of one rank
  std::size_t checkpoint = 0, checkpoint_files = 0;
  std::vector<Scale> scaling;   // 1, 2, 4 and 8 devices
  std::vector<Error> overruns;  // why it does not fit into memory, and what to change
  std::vector<Error> problems;  // these, and all else that is in the way
  [[nodiscard]] bool fits() const { return problems.empty(); }
};

[[nodiscard]] Plan make_plan(const PlanRequest& request);

// What a run is refused for before it starts, unless budget.enforce is off: the plan does not fit into
// memory.
[[nodiscard]] Status within_memory(const Plan& plan, bool with_table = true);

[[nodiscard]] std::string plan_text(const Plan& plan);
[[nodiscard]] std::string memory_text(const Plan& plan);  // its tables of who holds how much
[[nodiscard]] nlohmann::ordered_json plan_json(const Plan& plan);

}  // namespace sluice
