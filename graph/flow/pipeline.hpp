// The running graph: oneTBB nodes wired in one place, the threads that may block beside them, and the way a
// run ends: every batch stepped, a failure, or a stop from outside. Nothing is left running when run()
// returns, except a thread stuck in a read, or a request, that never comes back.
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
  bool abandoned = false;  // a read never came back, which base/process/left_behind has been told
  GraphFigures figures;    // the final figures
};

class Pipeline {
 public:
  // Has a ledger of the split's budget. After an abandoned run ledger, slots and stages live as long as the
  // process, whatever becomes of this object: the thread that is stuck may come back to them.
  Pipeline(const PipelineOptions& options, Stages stages);
  ~Pipeline();

  // `tick` is called on the calling thread about ten times a second.
  [[nodiscard]] RunEnd run(const std::function<void()>& tick = [] {});

  [[nodiscard]] Stop& stop();
  [[nodiscard]] const Ledger& ledger() const;
  [[nodiscard]] NodeStats& log_stats();
  [[nodiscard]] GraphFigures figures() const;      // any time, on any thread
  [[nodiscard]] std::vector<Slot*> slots() const;  // to be pinned before the run

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice
