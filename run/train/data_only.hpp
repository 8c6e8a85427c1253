// The data path of a configuration without anything behind it, for commands that need no device and no torch.
#pragma once

#include <memory>

#include "run/config/config.hpp"
#include "run/plan/run_plan.hpp"

namespace sluice {

struct DataOnly {
  Config config;
  RunPlan plan;  // pipeline.batches: all of the sequence
  std::shared_ptr<const DataSets> sets;
  Sequence sequence;
  std::uint64_t images;  // in the folder; a set smaller than a batch is repeated within it

  // All but upload and step.
  [[nodiscard]] Stages stages() const;
};

// data.train alone, over and over. Nothing else takes a core, so with "auto" all of them decode.
[[nodiscard]] Result<DataOnly> training_data(Config config);

}  // namespace sluice
