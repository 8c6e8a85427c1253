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

// The run that `what` belongs to: a checkpoint file, or "auto" for the newest run of this configuration that
// has a checkpoint. Empty if there is none yet. Lock it before looking into it: its process may still be
// saving.
[[nodiscard]] Result<std::filesystem::path> folder_to_resume(const std::string& what, const Config& config,
                                                             const std::filesystem::path& config_file);

struct Resume {
  Snapshot snapshot;
  struct Damaged {
    std::filesystem::path file;
    std::string reason;
  };
  std::vector<Damaged> passed_over;
};

// Renames a damaged checkpoint to <name>.damaged: it must not be taken for a sound one, nor be kept as such
// when the next one is written.
void set_aside(const std::filesystem::path& damaged);

// `what`: a checkpoint file, or "auto": the newest sound checkpoint of that run, nothing if it has none yet.
// An error if all that are there are damaged, or if one cannot be read.
[[nodiscard]] Result<std::optional<Resume>> find_resume(const std::string& what,
                                                        const std::filesystem::path& run);

// Keeps the first so many lines; how many there were of them. A file that is not there has none.
[[nodiscard]] Result<std::size_t> cut_lines(const std::filesystem::path& file, std::size_t lines);

}  // namespace sluice
