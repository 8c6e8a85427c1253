// What a checkpoint says of the run that wrote it, read and checked as a whole: one that lacks a part is
// refused before anything has happened.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/train/train_step.hpp"
#include "run/train/keeper.hpp"
#include "run/train/records.hpp"

namespace sluice {

struct ResumeState {
  std::uint64_t step = 0;  // finished; with `validated` the position
  bool validated = false;
  RecordPosition records;
  nlohmann::json shape, bad;
  std::uint64_t bad_lines = 0;  // of rank 0's quarantine
  PhaseSums epoch_sums, since_record;
  std::string monitor;
  std::vector<Keeper::Best> best;
};

[[nodiscard]] Result<ResumeState> resume_state(const Snapshot& checkpoint);

}  // namespace sluice
