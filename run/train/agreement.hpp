// What ranks agree on from batch to batch: when to stop, when to save, and how many images were bad. Each
// tells its part with the batch that it is about to begin, and hears with the next one what all have told: so
// nobody waits, and all do the same at the same batch. One that is alone agrees with itself at once.
// Order of calls: for each batch meet, then list, or forget where either failed or the run stops there; reach
// once a step or a validation is done; settle before a save that all ranks make.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "nodes/sampler.hpp"
#include "run/train/bad_images.hpp"

namespace sluice {

// As Ranks::exchange: the sums over all ranks of what the call before this one was given.
using Exchange = std::function<Result<std::vector<std::int64_t>>(std::span<const std::int64_t>)>;

class Agreement {
 public:
  struct Options {
    Sequence sequence;
    Exchange exchange = {};             // with the other ranks; none: alone
    std::function<int()> signal;        // that this process was sent; 0: none
    std::function<bool()> save_wished;  // by rank 0's clock; the clocks of the others do not count
  };
  Agreement(Options options, BadImages bad)
      : o_(std::move(options)), bad_(std::move(bad)), settled_(bad_.counts()) {}

  // A batch is about to begin. Afterwards stop_signal and save_due are what all ranks know; whoever stops
  // there does not list the batch any more.
  Status meet(const BatchPlan& plan, const std::vector<Bad>& bad);
  Status list(const BatchPlan& plan, const std::vector<Bad>& bad);
  // Nobody will tell of the last batch any more: it failed, or the run stops there.
  void forget() { told_.reset(); }

  // The run has come to a position, and bad images up to here belong to it; with ranks those of the last
  // batch are added when they are heard of.
  void reach() { settled_ = bad_.counts(); }
  // Tells and hears right now what the last batch, and those that only some ranks had, had of bad images.
  // All ranks come to it, after the same position.
  Status settle();
  [[nodiscard]] const BadCounts& settled() const { return settled_; }

  [[nodiscard]] bool alone() const { return !o_.exchange; }
  [[nodiscard]] int stop_signal() const { return stop_signal_; }  // 0: none; always 0 for one that is alone
  [[nodiscard]] bool save_due() const { return alone() ? o_.save_wished() : save_due_; }
  void saved() { save_due_ = false; }

 private:
  Status exchange(const BatchPlan* next, std::uint64_t bad, bool settles);
  [[nodiscard]] std::uint64_t images_of(Split split) const;

  Options o_;
  BadImages bad_;
  BadCounts settled_;              // as of the position
  std::optional<BatchPlan> told_;  // whose bad images the next exchange tells
  std::uint64_t untold_ = 0;       // bad images of batches that other ranks do not have
  int stop_signal_ = 0;
  bool save_due_ = false;
};

}  // namespace sluice
