#include "cli/tune/plan.hpp"
#include "base/text.hpp"

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
  const auto classes = static_cast<std::int64_t>(sets.train->class_names().size());
  Result<RunPlan> plan = plan_run(config, machine.host, machine.device, sets.index_bytes(), 1, classes);
  if (!plan || !config.budget.enforce) return plan;
  const auto too_much = [](const char* what, std::size_t needed, std::size_t there) {
    return Error{"plan", what, "needs " + readable_bytes(needed) + " of " + readable_bytes(there),
                 "lower train.batch; sluice plan tells who takes what"};
  };
  if (plan->memory.total() > machine.host.memory)
    return too_much("RAM", plan->memory.total(), machine.host.memory);
  const std::size_t vram = device_memory(config, {machine.device, classes}).total();
  if (machine.vram > 0 && vram > machine.vram) return too_much("VRAM", vram, machine.vram);
  return plan;
}

}  // namespace sluice
