// Everything about a run that is settled before a thread starts: data, plan, run folder, and the checkpoint
// to go on from. With several ranks, rank 0 decides about the folder and the checkpoint, and tells the
// others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/ranks/ranks.hpp"
#include "run/config/config.hpp"
#include "run/plan/run_plan.hpp"
#include "run/train/start.hpp"
#include "run/train/trainer.hpp"

namespace sluice {

struct TrainSetup {
  RunPlan plan;
  std::shared_ptr<const DataSets> sets;
  RunFacts run;
  std::shared_ptr<Ranks> ranks = {};  // none: alone
  RunStart start = {};
};

// `ranks`: none if alone. `device`: as resolve_device gives it.
[[nodiscard]] Result<TrainSetup> set_up_training(const Config& config, const ConfigArguments& arguments,
                                                 const std::string& resume, const std::string& device,
                                                 const Seat& seat, const std::shared_ptr<Ranks>& ranks);

// What the trainer needs of it; it takes the checkpoint or the weights that the run begins with, once.
[[nodiscard]] TrainerOptions trainer_options(TrainSetup& setup);

// What is about to happen, for people.
[[nodiscard]] std::vector<std::string> describe(const TrainSetup& setup);

}  // namespace sluice
