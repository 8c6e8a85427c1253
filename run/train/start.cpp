#include "run/train/start.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files/regular.hpp"
#include "base/printable.hpp"
#include "model/weights/weights_file.hpp"
#include "run/config/step_options.hpp"
#include "run/train/bad_images.hpp"
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

Expected expected(const RunFacts& o) { return {.arch = o.config.model.arch, .classes = o.classes}; }

bool same_moment(const Position& a, const Position& b) {
  return a.step == b.step && a.validated == b.validated && a.records == b.records;
}

// Goes on in the run's folder with the checkpoint that "auto" takes, or with one of the same moment: the best
// one often is. Any other forks, and so does one of which that cannot be told.
Result<RunStart> take_named(RunFacts& o, const fs::path& run, const std::string& file) {
  RunStart start;
  Result<std::unique_ptr<Descriptor>> lock = lock_run_folder(run);
  Result<std::optional<Resume>> found = find_resume("auto", run, expected(o));
  std::optional<Position> newest;
  std::vector<Resume::Damaged> passed_over;
  if (found && *found) {
    if (Result<Position> position = position_of((*found)->snapshot)) newest = std::move(*position);
    passed_over = std::move((*found)->passed_over);
  }
  found = std::optional<Resume>();  // a checkpoint may be large: never two at once
  found = find_resume(file, run, expected(o));
  if (!found) return found.error();
  start.point.resume = std::move((*found)->snapshot);
  const Result<Position> named = position_of(*start.point.resume);
  if (!named) return named.error();
  if (!newest || !same_moment(*named, *newest)) {
    start.fork_of = run;
    start.point.resume->source = fs::absolute(file).lexically_normal().string();  // it is told for good
    return start;
  }
  if (!lock) return lock.error();
  start.lock = std::move(*lock);
  o.folder = run;
  pass_over(start, std::move(passed_over));
  return start;
}

Result<RunStart> take_newest(RunFacts& o, const fs::path& run) {
  RunStart start;
  Result<std::unique_ptr<Descriptor>> lock = lock_run_folder(run);
  if (!lock) return lock.error();
  Result<std::optional<Resume>> found = find_resume("auto", run, expected(o));
  if (!found) return found.error();
  start.lock = std::move(*lock);
  o.folder = run;
  if (!*found) return start;
  start.point.resume = std::move((*found)->snapshot);
  pass_over(start, std::move((*found)->passed_over));
  return start;
}

Result<RunStart> take_up(RunFacts& o, const fs::path& config_file, const std::string& what) {
  const Result<fs::path> run = folder_to_resume(what, o.config, config_file);
  if (!run) return run.error();
  const Result<bool> there = is_run_there(*run);
  if (!there) return there.error();
  Result<RunStart> start = !*there          ? RunStart()
                           : what == "auto" ? take_newest(o, *run)
                                            : take_named(o, *run, what);
  if (!start) return start;
  const std::optional<Snapshot>& resume = start->point.resume;
  start->notes.push_back(resume ? "going on from " + printable(resume->source)
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
// Finds out as well where the run goes on.
Status can_start(RunStart& start, const RunFacts& o) {
  StartPoint& point = start.point;
  if (point.resume) {
    Result<Position> position = position_of(*point.resume);
    if (!position) return position.error();
    const Result<std::uint64_t> first = batch_after(*position, o, point.resume->source);
    if (!first) return first.error();
    point.position = std::move(*position);
    start.first_batch = *first;
  }
  const StepOptions options = step_options(o.config, o.classes, o.device, o.torch_threads);
  if (point.resume)
    if (Status fits = Step::would_restore(options, *point.resume); !fits) return fits;
  if (point.weights)
    if (Status fits = Step::would_start_from(options, *point.weights); !fits) return fits;
  return o.folder.empty() ? Status(Done{}) : can_write(o.folder, o.seat.world);
}

}  // namespace

Result<RunStart> find_start(RunFacts& o, const fs::path& config_file, const std::string& resume) {
  Result<RunStart> start = RunStart();
  if (!resume.empty()) start = take_up(o, config_file, resume);
  if (!start) return start;
  if (!o.config.model.weights.empty() && !start->point.resume) {
    Result<Snapshot> weights = read_weights(o.config.model.weights);
    if (!weights) return weights.error();
    start->point.weights = std::move(*weights);
  }
  if (Status good = can_start(*start, o); !good) return good.error();
  return start;
}

}  // namespace sluice
