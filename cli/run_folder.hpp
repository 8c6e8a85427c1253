// A run's folder, runs/<name>/: made for each run, never overwritten. Also finds the checkpoint to go on
// from.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/config.hpp"
#include "graph/result.hpp"
#include "model/checkpoint_file.hpp"

namespace sluice {

// log.dir/log.name, or log.dir/<config's file name>-<date>-<time> if no name is given.
[[nodiscard]] Result<std::filesystem::path> make_run_folder(const Config& config,
                                                            const std::filesystem::path& config_file);

// Held until the process ends: two processes that write to one run would spoil it.
[[nodiscard]] Status lock_run_folder(const std::filesystem::path& folder);

struct Resume {
  std::filesystem::path folder;  // the run to go on with
  Snapshot snapshot;
  std::vector<std::string> passed_over;  // damaged checkpoints, with the reason
};

// `what`: a checkpoint file, or "auto": the newest sound checkpoint of the newest run of this configuration.
// With "auto", nothing if there is none yet; an error if all that are there are damaged.
[[nodiscard]] Result<std::optional<Resume>> find_resume(const std::string& what, const Config& config,
                                                        const std::filesystem::path& config_file);

// Keeps the first so many lines; how many there were of them. A file that is not there has none.
[[nodiscard]] Result<std::size_t> cut_lines(const std::filesystem::path& file, std::size_t lines);

}  // namespace sluice
