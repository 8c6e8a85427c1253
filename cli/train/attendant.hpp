// All that happens ten times a second while a training run is on: answers to questions, the loss of ranks,
// warnings about memory, the drawing of the graph.
#pragma once

#include <filesystem>

#include "graph/figures/diagnosis.hpp"
#include "nodes/step.hpp"
#include "run/launch/rank_watch.hpp"
#include "run/session/session.hpp"
#include "run/train/memory_watch.hpp"
#include "run/train/setup.hpp"

namespace sluice {

class Attendant {
 public:
  // All of them outlive it.
  Attendant(Session& session, RankWatch& ranks, const StepStage& step, const TrainSetup& setup,
            const PartDiagnosis& diagnosis);

  void look();                 // each tick
  void signalled(int signal);  // tells, and ends the run if it is alone: ranks agree on it, in the trainer
  void answer();               // to SIGUSR1, if it has come
  void draw(const GraphFigures& figures);

 private:
  [[nodiscard]] bool starving() const;

  Session& session_;
  RankWatch& ranks_;
  const StepStage& step_;
  const Seat& seat_;
  const std::filesystem::path folder_;
  const PartDiagnosis& diagnosis_;
  MemoryWatch memory_;
  Nanoseconds drawn_ = 0, idle_since_ = 0;  // since the signal, or since step was last seen at work
  std::uint64_t begun_ = 0;                 // batches, when last looked
  bool told_ = false;
};

}  // namespace sluice
