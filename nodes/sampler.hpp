// Which image goes into which place of which batch, over the whole run: training epoch 0, its validation,
// epoch 1, ... as one sequence of batches that can be entered anywhere. An epoch of training is whole
// optimiser steps and drops the images left over; validation takes its images in order, each once.
// Ranks share one order: a global batch is one batch of each rank, side by side, so that equal global batches
// hold equal images however many ranks there are. In validation each rank has a piece of the set for itself.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "graph/flow/ticket.hpp"
#include "nodes/source/permutation.hpp"

namespace sluice {

struct RunShape {
  std::uint64_t train_images = 0, val_images = 0;
  std::uint32_t batch = 1;  // of one rank
  std::uint32_t rank = 0, ranks = 1;
  std::uint32_t accumulate = 1;  // batches of one optimiser step
  std::uint32_t epochs = 1;
  std::uint64_t max_steps = 0;  // 0: no limit; else training ends there, and is validated once more
  std::uint64_t seed = 0;
  bool validate = true;  // after each epoch
  [[nodiscard]] std::uint64_t global_batch() const { return std::uint64_t{batch} * ranks; }
};

// One batch of the sequence.
struct BatchPlan {
  Split split = Split::train;
  std::uint32_t epoch = 0;
  std::uint64_t in_phase = 0;  // number within its epoch's training or validation
  std::uint64_t phase_batches = 0;
  std::uint32_t places = 0;
  std::uint64_t step = 0;     // optimiser steps finished before this batch
  std::uint32_t in_step = 0;  // number within its optimiser step
  bool ends_step = false;     // the last batch of its optimiser step
  [[nodiscard]] bool last_of_phase() const { return in_phase + 1 == phase_batches; }
};

class Sequence {
 public:
  // Refuses a training set smaller than one step, and a validation set that leaves a rank without an image.
  [[nodiscard]] static Result<Sequence> make(const RunShape& shape);

  [[nodiscard]] std::uint64_t batches() const { return batches_; }
  [[nodiscard]] std::uint64_t steps_per_epoch() const { return train_ / shape_.accumulate; }
  [[nodiscard]] std::uint64_t val_batches() const { return val_; }  // of this rank
  [[nodiscard]] std::uint64_t common_val_batches() const;           // that every rank has
  [[nodiscard]] std::uint64_t first_val() const;                    // where this rank's piece begins
  [[nodiscard]] std::uint64_t val_images() const;                   // of this rank
  [[nodiscard]] BatchPlan at(std::uint64_t number) const;
  // The batch that follows so many steps, and the validation after the last of them if that is finished too.
  // Nothing if the run is over before. Means the same when epochs or max_steps have changed.
  [[nodiscard]] std::optional<std::uint64_t> after(std::uint64_t steps, bool validated) const;
  [[nodiscard]] const RunShape& shape() const { return shape_; }

 private:
  explicit Sequence(const RunShape& shape);
  RunShape shape_;
  std::uint64_t train_, val_, epochs_, last_train_, batches_;  // in batches, of an epoch or in all
};

// Gives out the tickets in order, from any batch on. Not for two threads at once.
class Sampler {
 public:
  Sampler(const Sequence& sequence, std::uint64_t first_batch);
  [[nodiscard]] std::optional<Ticket> next();

 private:
  Sequence sequence_;
  std::uint64_t batch_;
  std::uint32_t place_ = 0;
  BatchPlan plan_;
  std::optional<Permutation> order_;  // of plan_.epoch
  std::uint32_t order_epoch_ = 0;
};

}  // namespace sluice
