// The stage that consumes batches: takes each out of the graph, hands it to whoever trains on it, and sees to
// it that its memory comes back exactly once, whatever happens there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "graph/flow/stages.hpp"
#include "nodes/upload.hpp"

namespace sluice {

class StepStage {
 public:
  // Gets the batch with its number within the run, and how long step stood idle before it came. The batch is
  // there until the call ends; who has converted it releases it earlier.
  using Consume = std::function<Status(std::uint64_t number, OnDevice& batch, Nanoseconds waited)>;
  explicit StepStage(Consume consume) : consume_(std::move(consume)) {}

  Status operator()(Batch& batch);  // on step's thread

  // While one lives, step is at work: with a batch, or with what comes before the first and after the last.
  class Busy {
   public:
    explicit Busy(StepStage& stage) : flag_(stage.busy_) { flag_ = true; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    ~Busy() { flag_ = false; }

   private:
    std::atomic<bool>& flag_;
  };

  // On any thread: batches begun so far, and whether step is at work.
  [[nodiscard]] std::uint64_t begun() const { return begun_; }
  [[nodiscard]] bool busy() const { return busy_; }

 private:
  Consume consume_;
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<bool> busy_{false};
};

}  // namespace sluice
