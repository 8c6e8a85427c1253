// Threads that feed the device must not hold up the one that drives it. A thread that wakes may push another
// off its core, and whoever drove the device then waits for milliseconds with a batch already in its hands.
#pragma once

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>

namespace sluice {

// From now on the calling thread, when it wakes, waits for a free core or its turn. Its share of the time
// stays as it was. Asks for SCHED_BATCH; if the kernel refuses, nothing else changes.
void work_in_background();

// The same for every worker of an arena.
class BackgroundWorkers : public oneapi::tbb::task_scheduler_observer {
 public:
  explicit BackgroundWorkers(oneapi::tbb::task_arena& arena) : task_scheduler_observer(arena) {
    observe(true);
  }
  ~BackgroundWorkers() override { observe(false); }
  BackgroundWorkers(const BackgroundWorkers&) = delete;
  BackgroundWorkers& operator=(const BackgroundWorkers&) = delete;

  void on_scheduler_entry(bool worker) override {
    if (worker) work_in_background();
  }
};

}  // namespace sluice
