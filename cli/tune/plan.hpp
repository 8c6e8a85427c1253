// Whether a setting fits into memory by the plan: what does not is never tried.
#pragma once

#include "cli/tune/search.hpp"
#include "run/plan/machine.hpp"
#include "run/plan/run_plan.hpp"

namespace sluice {

struct TuneMachine {
  Machine host;
  std::string device = "cpu";  // as resolve_device gives it
  std::size_t vram = 0;        // bytes that are free on the GPU; 0: not known
};

// What the plan makes of a configuration: its settings in figures, "auto" settled.
[[nodiscard]] TuneSetting settled(const Config& config, const RunPlan& plan);

// The plan of a run, or why it does not fit.
[[nodiscard]] Result<RunPlan> plan_trial(const Config& config, const TuneMachine& machine,
                                         const DataSets& sets);

}  // namespace sluice
