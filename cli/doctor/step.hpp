// One real optimiser step of a configuration: data path, device and network as in a run.
#pragma once

#include "run/launch/checklist.hpp"
#include "run/train/batch_run.hpp"

namespace sluice {

// The step's images/s; 0 if it did not come that far.
double look_at_step(Checklist& list, BatchRun& run);

}  // namespace sluice
