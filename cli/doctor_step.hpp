// One real optimiser step of a configuration: data path, device and network as in a run, and what the step's
// speed asks of the data path.
#pragma once

#include "cli/batch_run.hpp"
#include "cli/checklist.hpp"

namespace sluice {

// The step's images/s; 0 if it did not come that far.
double look_at_step(Checklist& list, BatchRun& run);

// What the parts of the data path can deliver, against what the step takes. Pure.
struct FeedFigures {
  double storage = 0, decode = 0, step = 0;  // images/s; 0: not known
  unsigned decode_threads = 1;
  bool gpu = false;
};
void look_at_feed(Checklist& list, const FeedFigures& figures);

}  // namespace sluice
