#include "run/train/batch_run.hpp"

#include "base/thread_limit.hpp"
#include "nodes/step.hpp"
#include "run/config/step_options.hpp"
#include "run/data/synth_tree.hpp"
#include "run/plan/fit.hpp"
#include "run/session/session.hpp"

namespace sluice {

BatchRun::BatchRun(const Config& config, std::string device, RunPlan plan, DataSets sets,
                   const Sequence& sequence)
    : config_(config),
      device_(std::move(device)),
      plan_(std::move(plan)),
      sets_(std::make_shared<const DataSets>(std::move(sets))),
      sequence_(sequence) {}

Result<BatchRun> BatchRun::make(const Config& config, DataSets sets, RunShape shape, bool validation) {
  Result<std::string> device = resolve_device(config.model.device);
  if (!device) return device.error();
  if (!validation)  // which takes less than the plan, which is of training
    if (Status fits = fits_here(config, *device, data_of(sets)); !fits) return fits.error();
  Result<RunPlan> plan = plan_run(config, this_machine(), *device, sets.index_bytes());
  if (!plan) return plan.error();
  if (Status possible = can_make_threads(plan->threads()); !possible) return possible.error();
  Result<Sequence> sequence = Sequence::make(shape);
  if (!sequence) return sequence.error();
  const std::uint64_t training = sequence->batches() - sequence->val_batches();  // one epoch, or what is left
  plan->pipeline.first_batch = plan->data.first_batch = validation ? training : 0;
  plan->pipeline.batches = validation ? sequence->batches() : training;
  return BatchRun(config, *device, std::move(*plan), std::move(sets), *sequence);
}

Result<BatchRun> BatchRun::validation(const Config& config) {
  if (Status made = make_synth_tree(config); !made) return made.error();
  Result<DataSets> sets = scan_validation(config);
  if (!sets) return sets.error();
  RunShape shape = run_shape(config, *sets);
  shape.train_images = std::uint64_t{shape.batch} * shape.accumulate;  // never looked at
  shape.epochs = 1;
  shape.max_steps = 0;
  return make(config, std::move(*sets), shape, true);
}

Result<BatchRun> BatchRun::training(const Config& config, std::uint64_t batches) {
  const Result<std::string> device = resolve_device(config.model.device);
  if (!device) return device.error();
  if (Status fits = fits_before_synth(config, *device); !fits) return fits.error();
  if (Status made = make_synth_tree(config); !made) return made.error();
  Result<DataSets> sets = scan_data(config);
  if (!sets) return sets.error();
  return training(config, batches, std::move(*sets));
}

Result<BatchRun> BatchRun::training(const Config& config, std::uint64_t batches, DataSets sets) {
  RunShape shape = run_shape(config, sets);
  shape.accumulate = 1;  // a step here is a batch
  shape.max_steps = batches;
  shape.validate = false;
  const std::uint64_t each = std::max<std::uint64_t>(shape.train_images / shape.batch, 1);
  shape.epochs = static_cast<std::uint32_t>((batches + each - 1) / each);
  return make(config, std::move(sets), shape, false);
}

StepOptions BatchRun::step_options() const {
  return sluice::step_options(config_, classes(), device_, plan_.torch_threads);
}

Ending BatchRun::run(const BatchBody& body) {
  std::optional<Session> session;
  Stages stages = data_path(sets_, sequence_, plan_.data);
  stages.step_begin = body.begin;
  stages.step_over = body.over;
  StepStage step([&](std::uint64_t number, OnDevice& batch, Nanoseconds) -> Status {
    const Result<bool> more = body.step(sequence_.at(number), std::move(batch));
    if (!more) return more.error();
    if (!*more) session->enough();
    return Done{};
  });
  stages.step = [&](Batch& batch) { return step(batch); };
  session.emplace(plan_.pipeline, std::move(stages),
                  std::make_unique<DeviceFeed>([device = device_] { return open_device(device); },
                                               config_.train.batch, task_of(config_).sample));
  return session->run();
}

}  // namespace sluice
