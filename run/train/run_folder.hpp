// A run's folder, runs/<name>/: made for each run, never overwritten. Also finds the checkpoint to go on
// from.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/files/regular.hpp"
#include "base/result.hpp"
#include "model/weights/checkpoint_file.hpp"
#include "run/config/config.hpp"

namespace sluice {

// log.dir/log.name, or log.dir/<config's file name>-<date>-<time> if no name is given. A name that is taken
// is refused.
[[nodiscard]] Result<std::filesystem::path> make_run_folder(const Config& config,
                                                            const std::filesystem::path& config_file);
// The same for a run that is forked from another, without making it. The name of `origin`, the old one, is
// not refused: a number is added.
[[nodiscard]] Result<std::filesystem::path> name_of_fork(const Config& config,
                                                         const std::filesystem::path& config_file,
                                                         const std::filesystem::path& origin);

// Puts the resolved configuration into the run's folder, in place of what an earlier start has left there.
Status write_config(const std::filesystem::path& run, const std::string& text);

// Held while the run is on: two processes that write to one run would spoil it.
[[nodiscard]] Result<std::unique_ptr<Descriptor>> lock_run_folder(const std::filesystem::path& folder);

// The run that `what` belongs to: a checkpoint file, or "auto" for the newest run of this configuration that
// has a checkpoint. Empty if there is none yet. Lock it before looking into it: its process may still be
// saving.
[[nodiscard]] Result<std::filesystem::path> folder_to_resume(const std::string& what, const Config& config,
                                                             const std::filesystem::path& config_file);

// The quarantine lists of ranks that a run of `world` ranks does not have. Not every rank has a list.
[[nodiscard]] Result<std::vector<std::filesystem::path>> lists_of_former_ranks(
    const std::filesystem::path& run, int world);

// False if nothing has that name; an error if it is no folder, or cannot be looked at.
[[nodiscard]] Result<bool> is_run_there(const std::filesystem::path& run);

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
Status set_aside(const std::filesystem::path& damaged);

// `what`: a checkpoint file, or "auto": the newest sound checkpoint of that run, nothing if it has none yet.
// An error if all that are there are damaged, if one cannot be read, or if the folder cannot be listed.
[[nodiscard]] Result<std::optional<Resume>> find_resume(const std::string& what,
                                                        const std::filesystem::path& run,
                                                        const Expected& expected = {});

// Keeps the first so many lines; how many there were of them. A file that is not there has none.
[[nodiscard]] Result<std::size_t> cut_lines(const std::filesystem::path& file, std::size_t lines);
// Copies them to another file, if there are any.
Status copy_lines(const std::filesystem::path& from, const std::filesystem::path& to, std::size_t lines);

}  // namespace sluice
