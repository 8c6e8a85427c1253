// Threads outside TBB for work that may block: file reads and the big lane. They take the oldest sample
// first. What is under way stands in a completion table, so that a thread stuck in a dead mount holds nothing
// up once cancel() has settled it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "graph/flow/completion.hpp"

namespace sluice {

class Workers {
 public:
  using Work = std::function<void(Sample*)>;  // may block; must not throw
  Workers(unsigned threads, Work work, CompletionTable::Hooks hooks);
  ~Workers();

  unsigned start();  // how many it came to; throws if not even one can be had
  // So many may be at work at once from now on; starts the threads that are missing, and keeps those that are
  // too many asleep. How many it came to: fewer if the system gives no more. On the thread that starts and
  // joins.
  unsigned resize(unsigned threads);
  void submit(Sample* sample);
  void cancel();
  // False if some thread has not come back in time; it is then left to itself and keeps only its own state
  // alive.
  [[nodiscard]] bool join(std::chrono::milliseconds patience);
  [[nodiscard]] std::size_t outstanding() const;

 private:
  struct State;
  void add_thread();
  std::shared_ptr<State> state_;
  unsigned count_;
  std::vector<std::thread> threads_;
};

}  // namespace sluice
