// What happens on step's thread: trains and validates batch by batch, reads metrics back now and then, tells
// the log, keeps checkpoints and knows the position to resume from. Free of torch: the network is behind
// model/train/train_step. With several ranks, all do the same at the same batch, and rank 0 alone records and
// saves.
#pragma once

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "graph/flow/stages.hpp"
#include "model/ranks/ranks.hpp"
#include "model/train/schedule.hpp"
#include "model/train/train_step.hpp"
#include "nodes/log.hpp"
#include "nodes/sampler.hpp"
#include "nodes/upload.hpp"
#include "run/config/config.hpp"
#include "run/train/bad_images.hpp"
#include "run/train/interval.hpp"
#include "run/train/keeper.hpp"

namespace sluice {

struct TrainerOptions {
  Config config;
  Sequence sequence;
  int classes = 0;
  std::string device;
  unsigned torch_threads = 1;
  std::filesystem::path folder;
  std::string config_text;          // kept in checkpoints
  std::optional<Snapshot> resume;   // rank 0's; the others have its state without the tensors
  std::optional<Snapshot> weights;  // to start from
  std::size_t records = 0;          // that metrics.jsonl holds already, or says that it has lost
  Place place = {};
  std::shared_ptr<Ranks> ranks = {};  // none: alone
};

// What must be the same for a position to mean the same.
[[nodiscard]] nlohmann::json shape_of(const TrainerOptions& options);

// The batch where a run starts: 0, or where the checkpoint stood. Refuses one of another network or other
// data, and one that stands past the end of this run.
[[nodiscard]] Result<std::uint64_t> first_batch(const TrainerOptions& options);

class Trainer {
 public:
  // Before the run. `ledger_peak` and the log's statistics are looked at on step's thread.
  Trainer(TrainerOptions options, Log& log);
  void connect(NodeStats& log_stats, Stop& stop, std::function<std::size_t()> ledger_peak);
  void watch_gpu(std::function<Values()> figures) { gpu_ = std::move(figures); }  // see model/device/nvml.hpp

  void diagnose_epochs(std::function<std::string()> line) { diagnosis_ = std::move(line); }

  Status begin();  // these on step's thread
  Status step(Batch& batch);
  Status over();  // saves `last` if the weights are sound, and waits for what is being written

  [[nodiscard]] const Sequence& sequence() const { return o_.sequence; }
  [[nodiscard]] std::int64_t epoch() const;
  [[nodiscard]] std::int64_t steps() const { return static_cast<std::int64_t>(steps_); }
  // The signal that all ranks have agreed to stop for; 0: none. Alone there is nobody to agree with.
  [[nodiscard]] int agreed_stop() const { return stop_signal_; }
  // A batch that was there was not trained.
  [[nodiscard]] bool stopped_early() const { return stopped_early_; }
  // On any thread: batches begun so far, and whether one is being worked on.
  [[nodiscard]] std::uint64_t begun() const { return begun_; }
  [[nodiscard]] bool busy() const { return busy_; }

 private:
  Status agree(const BatchPlan* plan, std::uint64_t bad);
  Status note(const BatchPlan& plan, const std::vector<Bad>& bad);
  Status train(const BatchPlan& plan, DeviceBatch&& batch);
  Status validate(const BatchPlan& plan, DeviceBatch&& batch);
  Status read_back(double lr);
  void record_training(std::int64_t epoch, double lr);
  void report(const BatchPlan& plan);
  void put(Record record);
  void tell(std::string text);
  void warn(std::string text);
  Status settle();
  Status save(bool together);
  Status finish();
  [[nodiscard]] bool time_to_save() const;
  [[nodiscard]] bool together() const;
  [[nodiscard]] std::uint64_t images_of(Split split) const;
  [[nodiscard]] nlohmann::json state(const std::vector<Keeper::Best>& best) const;

  TrainerOptions o_;
  Log& log_;
  NodeStats* log_stats_ = nullptr;
  Stop* stop_ = nullptr;
  std::function<std::size_t()> ledger_peak_ = [] { return std::size_t{0}; };
  std::function<std::string()> diagnosis_ = [] { return std::string(); };
  std::function<Values()> gpu_ = [] { return Values(); };
  ScheduleOptions schedule_;
  MixOptions mix_;
  Keeper keeper_;
  BadImages bad_;
  nlohmann::json settled_bad_ = bad_.state();  // as of the position
  std::optional<Step> step_;
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<bool> busy_{false};
  bool stopped_early_ = false;

  std::uint64_t steps_ = 0;          // finished; with `validated_` the position
  bool validated_ = false;           // the validation after the last step is finished too
  bool sound_ = true;                // the weights are not in mid-change, nor known to be not finite
  std::optional<double> monitored_;  // of the validation after the last step
  bool unsaved_ = false, saved_here_ = false;
  std::optional<BatchPlan> told_;  // whose bad images the next exchange tells
  std::uint64_t untold_ = 0;       // bad images of batches that other ranks do not have
  int stop_signal_ = 0;
  bool save_due_ = false, last_batch_ = false;
  Nanoseconds saved_at_ = now_ns();
  std::size_t records_ = 0;
  PhaseSums epoch_sums_, since_record_;
  Interval phase_;
  Interval::Figures train_figures_;
  Values shown_;
};

}  // namespace sluice
