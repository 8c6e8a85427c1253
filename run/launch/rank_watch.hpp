// What a run does when it loses a rank, or fails itself: all ranks end, each says why, and none is left
// hanging.
#pragma once

#include <functional>
#include <memory>

#include "graph/flow/stop.hpp"
#include "model/ranks/ranks.hpp"

namespace sluice {

class RankWatch {
 public:
  using Tell = std::function<void(const Error&)>;  // on any thread; written out when it returns

  // Until a run is watched, the loss of a rank ends the process, with its last words to `tell`. Without ranks
  // nothing here does anything.
  RankWatch(std::shared_ptr<Ranks> ranks, Tell tell);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  void watch(Stop& stop);  // from now on the loss of a rank ends this run
  void release();          // the run is over, and its stop may go
  // This rank has failed: tells the others, once, and makes sure that the process comes to an end.
  void failed(const Error& why);
  // This rank is done: waits for the others. The loss of one meanwhile.
  std::optional<Error> leave(std::chrono::milliseconds at_most);

 private:
  struct State;
  std::shared_ptr<Ranks> ranks_;
  std::shared_ptr<State> state_;  // the heartbeat's thread may come late
};

}  // namespace sluice
