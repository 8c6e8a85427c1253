// Where a run starts: in a new folder or in one that is there, anew or from a checkpoint. In two parts:
// finding out, which changes nothing, and doing it, once nobody can refuse the run any more. Rank 0 does
// both.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "run/train/run_facts.hpp"

namespace sluice {

struct RunStart {
  StartPoint point;                            // rank 0's, until the trainer takes it
  std::uint64_t first_batch = 0;               // of the run's sequence
  std::filesystem::path fork_of;               // the run whose checkpoint a new one begins with; mostly none
  std::filesystem::path staged;                // where that one is filled, before it gets its name
  std::vector<std::filesystem::path> damaged;  // checkpoints to be set aside
  std::unique_ptr<Descriptor> lock;            // of the folder
  std::vector<std::string> notes, warnings;    // for the log, once there is one
};

// `resume`: as the command line has it; empty: none. Finds the checkpoint or the weights to start from,
// and fills in the folder, if it is there already. All that could refuse them has been looked at.
[[nodiscard]] Result<RunStart> find_start(RunFacts& facts, const std::filesystem::path& config_file,
                                          const std::string& resume);

// Makes the folder, or brings it back to where the checkpoint stood.
[[nodiscard]] Status open_start(RunStart& start, RunFacts& facts, const std::filesystem::path& config_file);

}  // namespace sluice
