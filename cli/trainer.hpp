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
#include "cli/device_feed.hpp"
#include "cli/interval.hpp"
#include "cli/keeper.hpp"
#include "graph/stages.hpp"
#include "model/schedule.hpp"
#include "nodes/log.hpp"
#include "nodes/sampler.hpp"
#include "nodes/step.hpp"

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
  std::optional<Snapshot> weights;  // to start from
  std::size_t records = 0;          // that metrics.jsonl holds already
};

// The batch where a run starts: 0, or where the checkpoint stood. Refuses one of another network or other
// data, and one that stands past the end of this run.
[[nodiscard]] Result<std::uint64_t> first_batch(const TrainerOptions& options);

class Trainer {
 public:
  // Before the run. `ledger_peak` and the log's statistics are looked at on step's thread.
  Trainer(TrainerOptions options, Log& log);
  void connect(NodeStats& log_stats, std::function<std::size_t()> ledger_peak);

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
  void record_training(std::int64_t epoch, double lr);
  void report(const BatchPlan& plan);
  void put(Record record);
  Status save();
  Status finish();
  [[nodiscard]] bool time_to_save() const;
  [[nodiscard]] nlohmann::json state(const std::vector<Keeper::Best>& best) const;

  TrainerOptions o_;
  Log& log_;
  NodeStats* log_stats_ = nullptr;
  std::function<std::size_t()> ledger_peak_ = [] { return std::size_t{0}; };
  ScheduleOptions schedule_;
  MixOptions mix_;
  Keeper keeper_;
  BadImages bad_;
  nlohmann::json settled_bad_ = bad_.state();  // as of the position
  std::optional<Step> step_;

  std::uint64_t steps_ = 0;          // finished; with `validated_` the position
  bool validated_ = false;           // the validation after the last step is finished too
  bool sound_ = true;                // the weights are not in mid-change, nor known to be not finite
  std::optional<double> monitored_;  // of the validation after the last step
  bool unsaved_ = false, saved_here_ = false;
  Nanoseconds saved_at_ = now_ns();
  std::size_t records_ = 0;
  PhaseSums epoch_sums_, since_record_;
  Interval phase_;
  Interval::Figures train_figures_;
  Values shown_;
};

}  // namespace sluice
