// One process's training, from the log's first line to its last.
#pragma once

#include "run/launch/rank_watch.hpp"
#include "run/train/setup.hpp"

namespace sluice {

// Takes checkpoint and weights out of the setup. The exit code, after everything has been told.
[[nodiscard]] int run_training(TrainSetup& setup, RankWatch& ranks);

}  // namespace sluice
