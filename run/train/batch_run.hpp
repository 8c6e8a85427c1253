// Some batches of a configuration's data through the graph into a function, for commands that leave no run
// behind. Data path, budget and device are those of training.
#pragma once

#include <functional>
#include <memory>

#include "model/train/train_step.hpp"
#include "nodes/sampler.hpp"
#include "nodes/upload.hpp"
#include "run/config/config.hpp"
#include "run/plan/run_plan.hpp"

namespace sluice {

// All on step's thread.
struct BatchBody {
  std::function<Status()> begin;
  // Releases the batch (Step does). False: that is enough.
  std::function<Result<bool>(const BatchPlan&, OnDevice&&)> step;
  std::function<void()> over = [] {};  // also after a failure; where what `begin` made is destroyed
};

class BatchRun {
 public:
  // The whole validation set, each image once; needs no training images.
  [[nodiscard]] static Result<BatchRun> validation(const Config& config);
  // So many training batches, from the first of epoch 0 on.
  [[nodiscard]] static Result<BatchRun> training(const Config& config, std::uint64_t batches);
  // Likewise, of a data set that has been scanned before.
  [[nodiscard]] static Result<BatchRun> training(const Config& config, std::uint64_t batches, DataSets sets);

  [[nodiscard]] int classes() const { return static_cast<int>(sets_->val.class_names().size()); }
  [[nodiscard]] std::uint64_t batches() const { return plan_.pipeline.batches - plan_.pipeline.first_batch; }
  [[nodiscard]] StepOptions step_options() const;

  // What the data path may take of RAM.
  [[nodiscard]] std::size_t budget() const { return plan_.pipeline.split.budget; }

  // The final figures, once it has run.
  [[nodiscard]] const GraphFigures& figures() const { return figures_; }

  // Signals end it early. The exit code: 0 done, 1 after its failure was printed (or given to `failure`),
  // 129/130/143 after a signal.
  [[nodiscard]] int run(const BatchBody& body, std::optional<Error>* failure = nullptr);

 private:
  BatchRun(const Config& config, std::string device, RunPlan plan, DataSets sets, const Sequence& sequence);
  static Result<BatchRun> make(const Config& config, DataSets sets, RunShape shape, bool validation);

  Config config_;
  std::string device_;
  RunPlan plan_;
  std::shared_ptr<const DataSets> sets_;
  Sequence sequence_;
  GraphFigures figures_;
};

}  // namespace sluice
