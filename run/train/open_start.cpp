#include <cerrno>
#include <cstring>

#include "base/files/durable.hpp"
#include "base/printable.hpp"
#include "model/device/version.hpp"
#include "run/train/bad_images.hpp"
#include "run/train/fork.hpp"
#include "run/train/run_folder.hpp"
#include "run/train/start.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

std::string lost_text(const fs::path& metrics, std::size_t there, std::size_t expected) {
  return printable(metrics.string()) + ": has " + std::to_string(there) + " of the " +
         std::to_string(expected) +
         " records that the checkpoint counts; a line of event \"gap\" tells where the others would be";
}

// The lists of ranks that this run does not have any more: who has their images now lists them again.
Status cut_former_ranks(const RunFacts& o, const BatchPlan& next) {
  const Result<std::vector<fs::path>> former = lists_of_former_ranks(o.folder, o.seat.world);
  if (!former) return former.error();
  for (const fs::path& file : *former)
    if (const Result<std::size_t> cut = cut_quarantine(file, next); !cut) return cut.error();
  return Done{};
}

// Records and quarantine go back to where the checkpoint stood. What is cut away came after it, and is made
// again, the same.
Status cut_back(RunStart& start, const RunFacts& o, const BatchPlan& next) {
  Position& position = *start.point.position;
  const RecordPosition at = position.among_records();
  const fs::path metrics = o.folder / "metrics.jsonl", quarantine = o.folder / quarantine_name(0);
  if (const Result<KeptRecords> before = kept_records(metrics, at); !before) return before.error();
  for (const fs::path& file : start.damaged)
    if (Status aside = set_aside(file); !aside) return aside;
  const Result<KeptRecords> kept = cut_records(metrics, at);
  if (!kept) return kept.error();
  if (kept->records < at.records) start.warnings.push_back(lost_text(metrics, kept->lines, at.records));
  const Result<std::size_t> lines = cut_lines(quarantine, position.bad.lines);
  if (!lines) return lines.error();
  if (*lines < position.bad.lines)
    start.warnings.push_back(printable(quarantine.string()) + ": has " + std::to_string(*lines) + " of the " +
                             std::to_string(position.bad.lines) + " lines that the checkpoint counts");
  position.bad.lines = *lines;
  return cut_former_ranks(o, next);
}

Status set_former_aside(RunStart& start, const RunFacts& o) {
  const Result<std::vector<fs::path>> files = former_records(o.folder);
  if (!files) return files.error();
  if (files->empty()) return Done{};
  const Result<fs::path> aside = set_records_aside(o.folder, *files);
  if (!aside) return aside.error();
  start.notes.push_back("what an earlier try has recorded is now in " + printable(aside->string()));
  return Done{};
}

// A new folder that begins as the old one stood then.
Status begin_fork(RunStart& start, const RunFacts& o, const BatchPlan& next) {
  const Snapshot& checkpoint = *start.point.resume;
  const Position& position = *start.point.position;
  const Result<KeptRecords> kept = fill_fork({.from = start.fork_of,
                                              .to = start.staged,
                                              .checkpoint = checkpoint,
                                              .position = position,
                                              .monitor = o.config.checkpoint.monitor,
                                              .keep = static_cast<std::size_t>(o.config.checkpoint.keep),
                                              .next = next,
                                              .world = o.seat.world});
  if (!kept) {
    std::error_code ignored;
    fs::remove_all(start.staged, ignored);  // a half of a run helps nobody
    return kept.error();
  }
  if (kept->records < position.records)
    start.warnings.push_back(lost_text(start.fork_of / "metrics.jsonl", kept->lines, position.records));
  start.notes.push_back("forked from " + printable(checkpoint.source) +
                        ", which is not the newest of its run: going on in " + printable(o.folder.string()) +
                        ", and " + printable(start.fork_of.string()) + " stays as it is");
  return Done{};
}

std::string headed(const std::string& config, const std::string& origin) {
  return "# " + version_text() + "\n" + (origin.empty() ? "" : origin + "\n") + config;
}

// So that its config.toml goes on with this folder.
void take_name(RunFacts& o) {
  if (o.config.log.name.empty() || o.folder.filename() == o.config.log.name) return;
  o.config.log.name = o.folder.filename().string();
  o.config_text = to_toml(o.config);
}

Status hold(RunStart& start, const fs::path& folder) {
  Result<std::unique_ptr<Descriptor>> lock = lock_run_folder(folder);
  if (!lock) return lock.error();
  start.lock = std::move(*lock);
  return Done{};
}

Status make_folder(RunStart& start, RunFacts& o, const fs::path& config_file) {
  Result<fs::path> folder = make_run_folder(o.config, config_file);
  if (!folder) return folder.error();
  o.folder = std::move(*folder);
  return hold(start, o.folder);
}

// A fork is filled under a name that no run has: if it is killed meanwhile, nobody takes it for a run, and
// who forks again begins again.
Status stage_fork(RunStart& start, RunFacts& o, const fs::path& config_file) {
  Result<fs::path> folder = name_of_fork(o.config, config_file, start.fork_of);
  if (!folder) return folder.error();
  o.folder = std::move(*folder);
  start.staged = o.folder.parent_path() / ("." + o.folder.filename().string() + ".forking");
  std::error_code error;
  fs::create_directory(start.staged, error);
  if (!error)
    if (Status held = hold(start, start.staged); !held) return held;
  std::vector<fs::path> former;
  for (fs::directory_iterator at(start.staged, error), end; !error && at != end; at.increment(error))
    former.push_back(at->path());
  for (const fs::path& left : former)
    if (!error) fs::remove_all(left, error);
  if (!error) fs::create_directory(start.staged / "checkpoints", error);
  if (error) return Error{"run folder", start.staged.string(), error.message(), "choose another log.dir"};
  return Done{};
}

Status name_fork(RunStart& start, const RunFacts& o) {
  if (move_file(start.staged, o.folder)) return Done{};
  const std::string cause = std::strerror(errno);
  std::error_code ignored;
  fs::remove_all(start.staged, ignored);
  return Error{"run folder", o.folder.string(), "cannot be given its name: " + cause,
               "choose another log.name"};
}

}  // namespace

Status open_start(RunStart& start, RunFacts& o, const fs::path& config_file) {
  const bool is_new = o.folder.empty(), forks = is_new && start.point.resume;
  if (is_new)
    if (Status made = forks ? stage_fork(start, o, config_file) : make_folder(start, o, config_file); !made)
      return made;
  take_name(o);
  std::string origin;
  if (start.point.resume) {
    const Result<std::string> told =
        forks ? origin_line(*start.point.resume, *start.point.position) : origin_of(o.folder);
    if (!told) return told.error();
    origin = *told;
    const BatchPlan next = o.sequence.at(start.first_batch);
    if (Status ready = forks ? begin_fork(start, o, next) : cut_back(start, o, next); !ready) return ready;
  } else if (!is_new) {
    if (Status aside = set_former_aside(start, o); !aside) return aside;
  }
  const fs::path& folder = forks ? start.staged : o.folder;
  std::error_code error;
  fs::create_directories(folder / "checkpoints", error);
  if (error) return Error{"run folder", (folder / "checkpoints").string(), error.message(), ""};
  if (Status written = write_config(folder, headed(o.config_text, origin)); !written) return written;
  return forks ? name_fork(start, o) : Status(Done{});
}

}  // namespace sluice
