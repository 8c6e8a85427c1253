// What a training run writes while it is on: the screen, and on rank 0 metrics.jsonl, train.log and
// TensorBoard events in the run's folder.
#pragma once

#include "nodes/log.hpp"
#include "run/train/position.hpp"
#include "run/train/run_facts.hpp"

namespace sluice {

// Opens the files, for Session::open_log.
[[nodiscard]] Result<LogOptions> log_options(const RunFacts& facts, const std::optional<Position>& resumed,
                                             std::size_t capacity);

}  // namespace sluice
