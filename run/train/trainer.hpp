// What happens on step's thread: trains and validates batch by batch, reads metrics back now and then, keeps
// checkpoints and knows the position to resume from. The network, the other ranks and the graph are behind
// functions. With several ranks, all do the same at the same batch, and rank 0 alone records and saves.
#pragma once

#include <functional>
#include <optional>

#include "graph/flow/stop.hpp"
#include "model/train/network.hpp"
#include "model/train/schedule.hpp"
#include "nodes/upload.hpp"
#include "run/launch/signals.hpp"
#include "run/train/agreement.hpp"
#include "run/train/keeper.hpp"
#include "run/train/recorder.hpp"
#include "run/train/run_facts.hpp"

namespace sluice {

// `note`: where the network says what the user should know.
using MakeNetwork = std::function<Result<Network>(std::function<void(const std::string&)> note)>;

struct TrainerOptions {
  RunFacts facts;
  StartPoint start = {};
  MakeNetwork network;     // called once, on step's thread
  Exchange exchange = {};  // with the other ranks; none: alone
  std::function<int()> signal = caught_signal;
};

class Trainer {
 public:
  Trainer(TrainerOptions options, Log& log);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  // Before the run. `ledger_peak` and the log's statistics are looked at on step's thread.
  void connect(NodeStats& log_stats, Stop& stop, std::function<std::size_t()> ledger_peak);
  void watch_gpu(std::function<Values()> figures) { recorder_.sources().gpu = std::move(figures); }
  void diagnose_epochs(std::function<std::string()> line) { recorder_.sources().diagnosis = std::move(line); }

  Status begin();  // these on step's thread
  Status step(std::uint64_t number, OnDevice& batch, Nanoseconds waited);
  Status over();  // saves `last` if the weights are sound, and waits for what is being written

  [[nodiscard]] const Sequence& sequence() const { return facts_.sequence; }
  [[nodiscard]] std::int64_t epoch() const;
  [[nodiscard]] std::int64_t steps() const { return static_cast<std::int64_t>(at_.step); }
  // The signal that all ranks have agreed to stop for; 0: none. Alone there is nobody to agree with.
  [[nodiscard]] int agreed_stop() const { return agreement_.stop_signal(); }
  // A batch that was there was not trained.
  [[nodiscard]] bool stopped_early() const { return stopped_early_; }

 private:
  Status note(const BatchPlan& plan, const std::vector<Bad>& bad);

  // Of the network, in trainer_phases.cpp.
  Status train(const BatchPlan& plan, DeviceBatch&& batch);
  Status validate(const BatchPlan& plan, DeviceBatch&& batch);
  Status read_back();

  // Of checkpoints, in trainer_save.cpp.
  [[nodiscard]] bool clock_wants_to_save() const;
  [[nodiscard]] bool time_to_save() const;
  [[nodiscard]] bool together() const;
  [[nodiscard]] std::string last_file() const;
  [[nodiscard]] Position position(const std::vector<Keeper::Best>& best) const;
  Status save(bool together);
  Status finish();

  RunFacts facts_;
  StartPoint start_;
  MakeNetwork make_network_;
  Log& log_;
  Stop* stop_ = nullptr;
  ScheduleOptions schedule_;
  MixOptions mix_;
  Keeper keeper_;
  Recorder recorder_;
  Agreement agreement_;
  std::optional<Network> network_;

  Position at_;                      // but for what others know: records, bad images, the best
  double lr_ = 0;                    // of the last step
  bool sound_ = true;                // the weights are not in mid-change, nor known to be not finite
  std::optional<double> monitored_;  // of the validation after the last step
  bool unsaved_ = false, saved_here_ = false;
  bool last_batch_ = false, stopped_early_ = false, failed_ = false;
  Nanoseconds saved_at_ = now_ns();
};

}  // namespace sluice
