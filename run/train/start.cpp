#include "run/train/start.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files/durable.hpp"
#include "base/files/regular.hpp"
#include "base/printable.hpp"
#include "model/device/version.hpp"
#include "model/weights/weights_file.hpp"
#include "run/config/config.hpp"
#include "run/config/step_options.hpp"
#include "run/train/bad_images.hpp"
#include "run/train/fork.hpp"
#include "run/train/run_folder.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

void pass_over(RunStart& start, std::vector<Resume::Damaged> all) {
  for (Resume::Damaged& damaged : all) {
    start.notes.push_back("passed over: " + damaged.reason);
    start.damaged.push_back(std::move(damaged.file));
  }
}

Expected expected(const TrainerOptions& o) { return {.arch = o.config.model.arch, .classes = o.classes}; }

bool same_moment(const nlohmann::json& a, const nlohmann::json& b) {
  for (const char* key : {"step", "validated", "records"})
    if (!a.contains(key) || !b.contains(key) || a[key] != b[key]) return false;
  return true;
}

// Goes on in the run's folder with the checkpoint that "auto" takes, or with one of the same moment: the best
// one often is. Any other forks, and so does one of which that cannot be told.
Result<RunStart> take_named(TrainerOptions& o, const fs::path& run, const std::string& file) {
  RunStart start;
  Result<std::unique_ptr<Descriptor>> lock = lock_run_folder(run);
  Result<std::optional<Resume>> found = find_resume("auto", run, expected(o));
  nlohmann::json newest;
  std::vector<Resume::Damaged> passed_over;
  if (found && *found) {
    newest = (*found)->snapshot.state;
    passed_over = std::move((*found)->passed_over);
  }
  found = std::optional<Resume>();  // a checkpoint may be large: never two at once
  found = find_resume(file, run, expected(o));
  if (!found) return found.error();
  o.resume = std::move((*found)->snapshot);
  if (!same_moment(o.resume->state, newest)) {
    start.fork_of = run;
    o.resume->source = fs::absolute(file).lexically_normal().string();  // it is told for good
    return start;
  }
  if (!lock) return lock.error();
  start.lock = std::move(*lock);
  o.folder = run;
  pass_over(start, std::move(passed_over));
  return start;
}

Result<RunStart> take_newest(TrainerOptions& o, const fs::path& run) {
  RunStart start;
  Result<std::unique_ptr<Descriptor>> lock = lock_run_folder(run);
  if (!lock) return lock.error();
  Result<std::optional<Resume>> found = find_resume("auto", run, expected(o));
  if (!found) return found.error();
  start.lock = std::move(*lock);
  o.folder = run;
  if (!*found) return start;
  o.resume = std::move((*found)->snapshot);
  pass_over(start, std::move((*found)->passed_over));
  return start;
}

Result<RunStart> take_up(TrainerOptions& o, const fs::path& config_file, const std::string& what) {
  const Result<fs::path> run = folder_to_resume(what, o.config, config_file);
  if (!run) return run.error();
  const Result<bool> there = is_run_there(*run);
  if (!there) return there.error();
  Result<RunStart> start = !*there          ? RunStart()
                           : what == "auto" ? take_newest(o, *run)
                                            : take_named(o, *run, what);
  if (!start) return start;
  start->notes.push_back(o.resume ? "going on from " + printable(o.resume->source)
                                  : "no checkpoint to resume from yet: starting anew");
  return start;
}

// Whether the run's files can be written, without writing: what is found later has cost something.
Status can_write(const fs::path& run, int ranks) {
  const auto refuse = [](const fs::path& path, const std::string& cause) {
    return Error{"run folder", path.string(), cause, "mend that, or choose another log.name"};
  };
  for (const fs::path& folder : {run, run / "checkpoints"})
    if (::access(folder.c_str(), W_OK | X_OK) != 0 && errno != ENOENT)
      return refuse(folder, std::string("cannot be written to: ") + std::strerror(errno));
  // This one is replaced, whatever it is.
  if (std::error_code none; fs::is_directory(run / "config.toml", none))
    return refuse(run / "config.toml", "is a folder, not a file");
  std::vector<std::string> names = {"metrics.jsonl", "train.log"};
  for (int rank = 0; rank < ranks; ++rank) names.push_back(quarantine_name(rank));
  for (const std::string& name : names) {
    const OpenedFile opened = open_for_writing((run / name).c_str(), O_WRONLY | O_APPEND);
    const Descriptor file(opened.fd);
    struct stat about {};
    if (opened.error == ENOENT && ::lstat((run / name).c_str(), &about) != 0) continue;
    if (file.get() < 0)
      return refuse(run / name, (opened.kind ? "" : "cannot be written to: ") + opened.cause());
  }
  return Done{};
}

// What cannot be gone on from, or begun with, is refused here: later the folder would have been changed.
Status can_start(const TrainerOptions& o) {
  if (const Result<std::uint64_t> first = first_batch(o); !first) return first.error();
  const StepOptions options = step_options(o.config, o.classes, o.device, o.torch_threads);
  if (o.resume)
    if (Status fits = Step::would_restore(options, *o.resume); !fits) return fits;
  if (o.weights)
    if (Status fits = Step::would_start_from(options, *o.weights); !fits) return fits;
  return o.folder.empty() ? Status(Done{}) : can_write(o.folder, o.place.world);
}

std::string lost_text(const fs::path& metrics, std::size_t there, std::size_t expected) {
  return printable(metrics.string()) + ": has " + std::to_string(there) + " of the " +
         std::to_string(expected) +
         " records that the checkpoint counts; a line of event \"gap\" tells where the others would be";
}

// The lists of ranks that this run does not have any more: who has their images now lists them again.
Status cut_former_ranks(const TrainerOptions& o, const BatchPlan& next) {
  const Result<std::vector<fs::path>> former = lists_of_former_ranks(o.folder, o.place.world);
  if (!former) return former.error();
  for (const fs::path& file : *former)
    if (const Result<std::size_t> cut = cut_quarantine(file, next); !cut) return cut.error();
  return Done{};
}

// Records and quarantine go back to where the checkpoint stood. What is cut away came after it, and is made
// again, the same.
Status cut_back(RunStart& start, TrainerOptions& o, const ResumeState& state, const BatchPlan& next) {
  const fs::path metrics = o.folder / "metrics.jsonl", quarantine = o.folder / quarantine_name(0);
  if (const Result<KeptRecords> before = kept_records(metrics, state.records); !before) return before.error();
  for (const fs::path& file : start.damaged)
    if (Status aside = set_aside(file); !aside) return aside;
  const Result<KeptRecords> kept = cut_records(metrics, state.records);
  if (!kept) return kept.error();
  if (kept->records < state.records.records)
    start.warnings.push_back(lost_text(metrics, kept->lines, state.records.records));
  const Result<std::size_t> lines = cut_lines(quarantine, state.bad_lines);
  if (!lines) return lines.error();
  if (*lines < state.bad_lines)
    start.warnings.push_back(printable(quarantine.string()) + ": has " + std::to_string(*lines) + " of the " +
                             std::to_string(state.bad_lines) + " lines that the checkpoint counts");
  o.resume->state["bad"]["lines"] = *lines;
  return cut_former_ranks(o, next);
}

Status set_former_aside(RunStart& start, const TrainerOptions& o) {
  const Result<std::vector<fs::path>> files = former_records(o.folder);
  if (!files) return files.error();
  if (files->empty()) return Done{};
  const Result<fs::path> aside = set_records_aside(o.folder, *files);
  if (!aside) return aside.error();
  start.notes.push_back("what an earlier try has recorded is now in " + printable(aside->string()));
  return Done{};
}

// A new folder that begins as the old one stood then.
Status begin_fork(RunStart& start, TrainerOptions& o, const ResumeState& state, const BatchPlan& next) {
  const Result<KeptRecords> kept =
      fill_fork({start.fork_of, start.staged, *o.resume, state, o.config.checkpoint.monitor,
                 static_cast<std::size_t>(o.config.checkpoint.keep), next, o.place.world});
  if (!kept) {
    std::error_code ignored;
    fs::remove_all(start.staged, ignored);  // a half of a run helps nobody
    return kept.error();
  }
  if (kept->records < state.records.records)
    start.warnings.push_back(lost_text(start.fork_of / "metrics.jsonl", kept->lines, state.records.records));
  start.notes.push_back("forked from " + printable(o.resume->source) +
                        ", which is not the newest of its run: going on in " + printable(o.folder.string()) +
                        ", and " + printable(start.fork_of.string()) + " stays as it is");
  return Done{};
}

std::string headed(const std::string& config, const std::string& origin) {
  return "# " + version_text() + "\n" + (origin.empty() ? "" : origin + "\n") + config;
}

// So that its config.toml goes on with this folder.
void take_name(TrainerOptions& o) {
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

Status make_folder(RunStart& start, TrainerOptions& o, const fs::path& config_file) {
  Result<fs::path> folder = make_run_folder(o.config, config_file);
  if (!folder) return folder.error();
  o.folder = std::move(*folder);
  return hold(start, o.folder);
}

// A fork is filled under a name that no run has: if it is killed meanwhile, nobody takes it for a run, and
// who forks again begins again.
Status stage_fork(RunStart& start, TrainerOptions& o, const fs::path& config_file) {
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

Status name_fork(RunStart& start, const TrainerOptions& o) {
  if (move_file(start.staged, o.folder)) return Done{};
  const std::string cause = std::strerror(errno);
  std::error_code ignored;
  fs::remove_all(start.staged, ignored);
  return Error{"run folder", o.folder.string(), "cannot be given its name: " + cause,
               "choose another log.name"};
}

}  // namespace

Result<RunStart> find_start(TrainerOptions& o, const fs::path& config_file, const std::string& resume) {
  Result<RunStart> start = RunStart();
  if (!resume.empty()) start = take_up(o, config_file, resume);
  if (!start) return start;
  if (!o.config.model.weights.empty() && !o.resume) {
    Result<Snapshot> weights = read_weights(o.config.model.weights);
    if (!weights) return weights.error();
    o.weights = std::move(*weights);
  }
  if (Status good = can_start(o); !good) return good.error();
  return start;
}

Status open_start(RunStart& start, TrainerOptions& o, const fs::path& config_file) {
  const bool is_new = o.folder.empty(), forks = is_new && o.resume;
  if (is_new)
    if (Status made = forks ? stage_fork(start, o, config_file) : make_folder(start, o, config_file); !made)
      return made;
  take_name(o);
  std::string origin;
  if (o.resume) {
    const Result<ResumeState> state = resume_state(*o.resume);
    if (!state) return state.error();
    const Result<std::uint64_t> first = first_batch(o);
    if (!first) return first.error();
    const Result<std::string> told = forks ? origin_line(*o.resume, *state) : origin_of(o.folder);
    if (!told) return told.error();
    origin = *told;
    const BatchPlan next = o.sequence.at(*first);
    if (Status ready = forks ? begin_fork(start, o, *state, next) : cut_back(start, o, *state, next); !ready)
      return ready;
    o.records = state->records.records;
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
