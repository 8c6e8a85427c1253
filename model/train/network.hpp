// What a run asks of the network that it trains: plain functions, given from outside. The real one and the
// tests' fakes fill in the same struct. Made, used and destroyed on one thread; what each promises is said at
// Step (model/train/train_step.hpp).
#pragma once

#include <functional>

#include "model/train/train_step.hpp"

namespace sluice {

struct Network {
  std::function<Status(DeviceBatch&&, const TrainStep&)> train;
  std::function<Status(DeviceBatch&&)> eval;
  std::function<Result<StepSums>()> read_back;
  std::function<Status(Snapshot&)> snapshot;
  std::function<Status(const Snapshot&)> restore;
  std::function<Result<bool>(const Snapshot&)> start_from;
  std::function<Status()> share;
  std::function<bool()> intact;
};

// A Step behind these functions; it goes with the last of them.
[[nodiscard]] Result<Network> make_network(const StepOptions& options);

}  // namespace sluice
