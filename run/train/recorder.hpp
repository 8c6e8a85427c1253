// What a run tells of itself: records of training and validation, the progress line, the summary of each
// epoch, messages. Knows neither network nor ranks: it is given sums, and one that is not to speak keeps the
// clocks alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/figures/stats.hpp"
#include "graph/memory/slots.hpp"
#include "model/task.hpp"
#include "model/train/train_step.hpp"
#include "nodes/log.hpp"
#include "nodes/sampler.hpp"
#include "run/train/interval.hpp"

namespace sluice {

// What a record holds beside sums and rates, asked for when it is made.
struct RecordSources {
  NodeStats* log_stats = nullptr;  // learns how long a full queue held a record up
  std::function<std::size_t()> ledger_peak = [] { return std::size_t{0}; };
  std::function<std::string()> diagnosis = [] { return std::string(); };  // of the epoch that is over
  std::function<Values()> gpu = [] { return Values(); };                  // see model/device/nvml.hpp
};

class Recorder {
 public:
  struct Options {
    bool speaks = true;            // false: of records, progress and messages there are none
    std::size_t records = 0;       // made before
    std::uint32_t accumulate = 1;  // batches of an optimiser step
    decltype(Task::figures) figures = nullptr;
  };
  Recorder(const Options& options, Log& log) : o_(options), log_(log) {}
  RecordSources& sources() { return sources_; }

  // Of each batch: first when it has come, then that it is worked on, then that it is done.
  void batch_came(const BatchPlan& plan, Nanoseconds waited);
  void batch_taken(std::uint64_t images) { phase_.images(images); }  // of all ranks
  void batch_done(const BatchPlan& plan);

  void training(std::int64_t epoch, std::int64_t step, const PhaseSums& since_record, double lr);
  // The figures of the epoch that this validation ends, `epoch_sums` being those of its training.
  Values validation(std::int64_t epoch, std::int64_t step, const PhaseSums& epoch_sums, const StepSums& sums);

  void tell(std::string text);
  void warn(std::string text);
  void bad_images(const std::vector<Bad>& bad);  // told even by one that does not speak

  [[nodiscard]] std::size_t records() const { return o_.records; }

 private:
  void put(Record record);

  Options o_;
  Log& log_;
  RecordSources sources_;
  Interval phase_;
  Interval::Figures trained_;  // of the last training that was over
  Values shown_;               // in the progress line, since the last record
};

}  // namespace sluice
