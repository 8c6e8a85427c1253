// What happens on step's thread: trains and validates batch by batch, reads metrics back now and then, tells the
// log, keeps checkpoints and knows the position to resume from. Free of torch: the network is behind nodes/step.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "cli/config.hpp"
#include "cli/keeper.hpp"
#include "graph/stages.hpp"
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
  std::string config_text;                 // kept in checkpoints
  std::optional<Snapshot> resume;
  NodeStats* log_stats = nullptr;          // where waiting for the log is counted; may be set later
};

class Trainer {
 public:
  Trainer(TrainerOptions options, Log& log);
  ~Trainer();

  // The batch where the run starts: 0, or where the checkpoint stood. Refuses a checkpoint of another run's shape.
  [[nodiscard]] static Result<std::uint64_t> first_batch(const TrainerOptions& options);
  // How many records metrics.jsonl had at that point.
  [[nodiscard]] static std::size_t records_before(const TrainerOptions& options);

  Status prepare_upload(const std::vector<Slot*>& slots);  // before the run; on any thread
  Status upload(Batch& batch);
  Status begin();             // these on step's thread
  Status step(Batch& batch);
  void over(bool healthy);    // saves `last` unless the weights may be in mid-change

  [[nodiscard]] const Sequence& sequence() const;
  [[nodiscard]] std::int64_t epoch() const;  // where the run stands; after it has ended
  [[nodiscard]] std::int64_t steps() const;
  void set_log_stats(NodeStats* stats);
  void cancel_upload();       // wakes an upload that waits

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
