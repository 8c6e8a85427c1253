// Trains and evaluates the network, batch by batch. Lives on one thread of its own: create, use and destroy
// it there. Nothing waits for the device except read_back, snapshot and restore.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/device/upload_ring.hpp"
#include "model/task.hpp"
#include "model/train/mix.hpp"
#include "model/weights/checkpoint_file.hpp"

namespace sluice {

class Ranks;
class ReduceTrace;

// All is off here: what a training starts with unless told otherwise is the configuration's to say
// (run/config/step_options).
struct StepOptions {
  std::string arch;  // "resnet50", ...
  int classes = 1000;
  std::string device = "cpu";      // as resolve_device gives it
  int device_index = 0;            // which GPU of this host
  std::string precision = "fp32";  // fp32, tf32, bf16, fp16 (GPU only), fp64 (CPU only, for checks)
  bool channels_last = false;
  std::string compile = "none";  // "graph": whole steps are recorded and replayed, on one GPU
  std::function<void(const std::string&)> note = [](const std::string&) {};  // what the user should know
  bool recompute = false;      // blocks keep their input alone for the backward pass
  bool zero_init = false;      // the last norm of each block starts at zero
  double label_smoothing = 0;  // in training and evaluation alike, as torchvision's reference does
  double momentum = 0;
  double weight_decay = 0;
  bool decay_all = false;  // norms and biases decay too
  bool nesterov = false;
  double clip = 0;         // norm of all gradients; 0: not clipped
  double ema = 0;          // decay of the averaged weights; 0: none are kept
  int accumulate = 1;      // batches of one optimiser step
  int threads = 0;         // CPU threads of torch; 0 leaves its own choice
  std::uint64_t seed = 0;  // of the initial weights
  std::array<float, 3> mean{0.485f, 0.456f, 0.406f};
  std::array<float, 3> std{0.229f, 0.224f, 0.225f};
  int batch = 0;  // samples in the largest batch; the input's memory is allocated for it
  Task task;
  std::shared_ptr<Ranks> ranks;        // who trains the same network; null: nobody else
  bool sync_bn = false;                // statistics of the norms are taken over all ranks
  std::shared_ptr<ReduceTrace> trace;  // of the sums of gradients over the ranks; null: none
};

// How to train on a batch.
struct TrainStep {
  TrainStep(double rate, std::uint64_t finished = 0, const Mix& how = {})
      : lr(rate), steps(finished), mix(how) {}
  double lr;
  std::uint64_t steps;  // optimiser steps finished before
  Mix mix;
  // read_back follows this step: with ranks its sums are taken before the weights change, so that a rank that
  // is lost meanwhile costs the step and not its record.
  bool read_back = false;
};

// Sums over the images of all ranks since the last read_back. Masked images (label -1) are in none of them.
struct PhaseSums {
  double loss = 0;
  std::int64_t count = 0;
  std::int64_t judged = 0;  // images that count for the accuracy: those of batches that were not mixed
  std::int64_t correct1 = 0;
  std::int64_t correct5 = 0;
  std::int64_t batches = 0;
  std::int64_t not_finite = 0;  // batches whose loss was NaN or infinite; left out of the sums above
};

struct StepSums {
  PhaseSums train;  // of finished optimiser steps
  PhaseSums eval;
  PhaseSums ema;  // evaluation of the averaged weights
  // False: stop the run. With fp16, a training loss that is not finite is left to the scaler until it has
  // left out 16 steps in a row.
  bool finite = true;
  double loss_scale = 1;  // 1 unless fp16
};

// With ranks, create, share, read_back, each train and the first eval after a train are collectives: all
// ranks come to them in the same order.
class Step {
 public:
  static Result<Step> create(const StepOptions& options);
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  ~Step();

  // Both release the batch exactly once, as soon as it is converted, whatever happens.
  // Every `accumulate`-th batch ends an optimiser step.
  Status train(DeviceBatch&& batch, const TrainStep& how);
  Status eval(DeviceBatch&& batch);
  Result<StepSums> read_back();

  // Copies all weights ("model.<name>"), momenta ("momentum.<name>"), averages ("ema.<name>") and the scaler
  // to host memory, as they were after the last finished optimiser step; `into` keeps its memory between
  // calls and its `state` is left alone.
  Status snapshot(Snapshot& into);
  // Refuses a snapshot of another network by name, and changes nothing then.
  Status restore(const Snapshot& snapshot);

  // Starts from the weights of another training ("model.<name>"). A classifier for another number of classes
  // is left as it is; true if that was so. Refuses other networks by name, and changes nothing then.
  Result<bool> start_from(const Snapshot& weights);

  // What restore and start_from would say, without a step: before a run has begun to change anything.
  static Status would_restore(const StepOptions& options, const Snapshot& snapshot);
  static Status would_start_from(const StepOptions& options, const Snapshot& weights);

  // Makes weights, momenta, averages and scaler of all ranks those of rank 0: after rank 0 has restored them.
  // Nothing for one that is alone.
  Status share();
  // Whether a snapshot would be that of the last finished step: true also after a train that failed, unless
  // it did so in the middle of the optimiser.
  [[nodiscard]] bool intact() const;

  [[nodiscard]] std::int64_t parameters() const;

 private:
  struct Impl;
  explicit Step(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// "auto", "cpu" or "cuda" to "cpu" or "cuda"; says why where "cuda" cannot be had.
Result<std::string> resolve_device(const std::string& asked);
// What to tell where "auto" made less of a CUDA build than it could be; mostly empty.
[[nodiscard]] std::string device_note(const std::string& asked, const std::string& got);

}  // namespace sluice
