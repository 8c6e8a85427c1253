// Reads in completion style: hands samples to a source that keeps many requests in flight on threads of its
// own, the oldest first and no more at once than allowed. What is under way stands in a completion table, as
// with Workers.
#pragma once

#include <chrono>
#include <memory>

#include "graph/flow/completion.hpp"
#include "graph/flow/stage_runner.hpp"

namespace sluice {

class Requests {
 public:
  Requests(StageRunner& runner, CompletionTable::Hooks hooks);
  ~Requests();

  void resize(unsigned at_once);  // begins what that makes room for
  void submit(Sample* sample);
  void cancel();  // settles the table and asks the source to come back with what is under way
  // False if some request has not come back in time: what it may still write into must then stay. After
  // cancel.
  [[nodiscard]] bool join(std::chrono::milliseconds patience);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sluice
