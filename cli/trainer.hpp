// What happens on step's thread: trains and validates batch by batch, reads metrics back now and then, tells
// the log, keeps checkpoints and knows the position to resume from. Free of torch: the network is behind
// nodes/step.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/bad_images.hpp"
#include "cli/config.hpp"
#include "cli/interval.hpp"
#include "cli/keeper.hpp"
#include "graph/stages.hpp"
#include "model/schedule.hpp"
#include "nodes/log.hpp"
#include "nodes/sampler.hpp"
#include "nodes/step.hpp"
#include "nodes/upload.hpp"

namespace sluice {

struct TrainerOptions {
  Config config;
  Sequence sequence;
  int classes = 0;
  std::string device;
  unsigned torch_threads = 1;
  std::filesystem::path folder;
  std::string config_text;  // kept in checkpoints
  std::optional<Snapshot> resume;
  std::size_t records = 0;  // that metrics.jsonl holds already
};

// The batch where a run starts: 0, or where the checkpoint stood. Refuses one of another network or other
// data, and one that stands past the end of this run.
[[nodiscard]] Result<std::uint64_t> first_batch(const TrainerOptions& options);

class Trainer {
 public:
  Trainer(TrainerOptions options, Log& log);
  ~Trainer();

  // Before the run: the slots are pinned, and time spent waiting for the log is counted there.
  Status prepare(const std::vector<Slot*>& slots, NodeStats& log_stats);

  Status upload(Batch& batch);  // on upload's thread
  void cancel_upload();         // wakes an upload that waits; on any thread

  Status begin();  // these on step's thread
  Status step(Batch& batch);
  Status over();  // saves `last` if the weights are sound, and waits for what is being written

  [[nodiscard]] const Sequence& sequence() const { return o_.sequence; }
  [[nodiscard]] std::int64_t epoch() const;
  [[nodiscard]] std::int64_t steps() const { return static_cast<std::int64_t>(steps_); }

 private:
  Status train(const BatchPlan& plan, DeviceBatch&& batch);
  Status validate(const BatchPlan& plan, DeviceBatch&& batch);
  Status read_back(double lr);
  void report(const BatchPlan& plan);
  void put(Record record);
  Status save(const double* monitored);
  [[nodiscard]] StepOptions step_options() const;
  [[nodiscard]] nlohmann::json state(const std::vector<Keeper::Best>& best) const;

  TrainerOptions o_;
  Log& log_;
  NodeStats* log_stats_ = nullptr;
  ScheduleOptions schedule_;
  Keeper keeper_;
  BadImages bad_;
  std::vector<Slot*> pinned_;
  std::optional<Upload> upload_;
  std::optional<Step> step_;

  std::uint64_t steps_ = 0;  // finished; with `validated_` the position
  bool validated_ = false;   // the validation after the last step is finished too
  bool sound_ = true;        // the weights are not in mid-change, nor known to be not finite
  bool unsaved_ = false, saved_here_ = false;
  std::size_t records_ = 0;
  PhaseSums epoch_sums_, since_record_;
  Interval phase_;
  Interval::Figures train_figures_;
  Values shown_;
};

}  // namespace sluice
