#include "cli/tune_plan.hpp"

namespace sluice {

TuneSetting settled(const Config& config, const RunPlan& plan) {
  TuneSetting s;
  s.batch = config.train.batch;
  s.accumulate = config.train.accumulate;
  s.decode_threads = plan.pipeline.decode_threads;
  s.torch_threads = plan.torch_threads;
  s.read_threads = plan.pipeline.read_threads;
  s.read_ahead = static_cast<std::int64_t>(plan.pipeline.split.read_ahead);
  s.prefetch = plan.pipeline.split.slots;
  return s;
}

Result<RunPlan> plan_trial(const Config& config, const TuneMachine& machine, const DataSets& sets) {
  return plan_run(config, machine.host, machine.device, sets.train.index_bytes() + sets.val.index_bytes());
}

}  // namespace sluice
