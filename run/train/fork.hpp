// A run that goes on from a checkpoint which is not the newest of its run: a new folder with all that the old
// one had at that time, so that it is a run like any other from its first moment. The old one is only read.
#pragma once

#include <filesystem>

#include "nodes/sampler.hpp"
#include "run/train/position.hpp"

namespace sluice {

struct ForkOptions {
  std::filesystem::path from, to;  // run folders; `to` is new
  const Snapshot& checkpoint;
  const Position& position;
  std::string monitor;   // the best by another figure stay behind
  std::size_t keep = 0;  // so many of the best come along
  BatchPlan next;        // the first batch
  int world = 1;         // ranks; all but the first bring their quarantine themselves
};

// Records, rank 0's quarantine, the best, and the checkpoint as last.ckpt, which comes last. The records that
// `from` lacks are told by the result, as by cut_records.
[[nodiscard]] Result<KeptRecords> fill_fork(const ForkOptions& options);

// Where a fork came from, as its config.toml says it.
[[nodiscard]] std::string origin_line(const Snapshot& checkpoint, const Position& position);
// The one that a config.toml has; empty if it has none.
[[nodiscard]] Result<std::string> origin_of(const std::filesystem::path& run);

}  // namespace sluice
