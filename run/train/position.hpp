// Where a run stands, as its checkpoints say it: written and read here alone. A checkpoint that lacks a part,
// or has one of another kind, is refused as a whole, by its file and the part's name, before anything has
// happened.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/train/train_step.hpp"
#include "run/train/bad_images.hpp"
#include "run/train/keeper.hpp"
#include "run/train/records.hpp"

namespace sluice {

struct Position {
  std::uint64_t step = 0;          // optimiser steps finished; with `validated` the position
  bool validated = false;          // the validation after the last step is finished too
  std::int64_t epoch = 0;          // of the last step
  std::size_t records = 0;         // made by then
  PhaseSums epoch_sums;            // of the epoch's steps so far; not_finite is always 0 here
  PhaseSums since_record;          // of the steps since the last record
  BadCounts bad;                   // of rank 0's list
  std::string monitor;             // the figure that `best` are the best by
  std::vector<Keeper::Best> best;  // best first
  std::string config;              // of the run, as TOML
  // What must be the same for the position to mean the same, by name (see run_facts.hpp). An open list: each
  // kind of training has names of its own, and they are only ever compared.
  nlohmann::json shape = nlohmann::json::object();

  [[nodiscard]] RecordPosition among_records() const {
    return {
        .records = records, .epoch = epoch, .step = static_cast<std::int64_t>(step), .validated = validated};
  }
};

[[nodiscard]] nlohmann::json to_json(const Position& position);
[[nodiscard]] Result<Position> position_of(const Snapshot& checkpoint);

}  // namespace sluice
