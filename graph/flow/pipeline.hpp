// The running graph: oneTBB nodes wired in one place, the threads that may block beside them, and the way a
// run ends: every batch stepped, a failure, or a stop from outside. Nothing is left running when run()
// returns, except a thread stuck in a read that never comes back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "graph/figures/layout.hpp"
#include "graph/flow/stages.hpp"

namespace sluice {

struct RunEnd {
  std::optional<Error> failure;
  bool finished = false;   // every batch went through step
  bool abandoned = false;  // a thread is stuck in a read: leave the process by _exit
  GraphFigures figures;    // the final figures
};

class Pipeline {
 public:
  // The ledger must have been made for the split's budget; the pipeline opens its accounts there. It must
  // live as long as the pipeline, and after an abandoned run as long as the process.
  Pipeline(const PipelineOptions& options, Stages stages, Ledger& ledger);
  ~Pipeline();

  // `tick` is called on the calling thread about ten times a second.
  [[nodiscard]] RunEnd run(const std::function<void()>& tick = [] {});

  [[nodiscard]] Stop& stop();
  [[nodiscard]] NodeStats& log_stats();
  [[nodiscard]] GraphFigures figures() const;      // any time, on any thread
  [[nodiscard]] std::vector<Slot*> slots() const;  // to be pinned before the run

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice
