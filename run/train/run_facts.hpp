// What a run is: settled before anything starts, the same for as long as it lasts.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "model/ranks/seat.hpp"
#include "nodes/sampler.hpp"
#include "run/config/config.hpp"
#include "run/train/position.hpp"

namespace sluice {

struct RunFacts {
  Config config;
  std::string config_text;  // the same as TOML, for checkpoints and the run's folder
  Sequence sequence;
  int classes = 0;
  std::string device;  // as resolve_device gives it
  unsigned torch_threads = 1;
  Seat seat = {};
  std::filesystem::path folder = {};  // of the run; empty until it is known
};

// What a run begins with, all of it empty for one that begins anew. The snapshots are large: who needs one
// takes it out.
struct StartPoint {
  std::optional<Position> position;  // of the checkpoint to go on from, on every rank
  std::optional<Snapshot> resume;    // that checkpoint, on rank 0 alone
  std::optional<Snapshot> weights;   // of another training, on rank 0 alone
};

// What must be the same for a position to mean the same.
[[nodiscard]] nlohmann::json shape_of(const RunFacts& facts);

// The batch that follows a position. Refuses one of another network or other data, and one that stands past
// the end of this run; `source` is the checkpoint's name for that.
[[nodiscard]] Result<std::uint64_t> batch_after(const Position& position, const RunFacts& facts,
                                                const std::string& source);

}  // namespace sluice
