#include "run/train/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/files/durable.hpp"
#include "base/files/record_lines.hpp"
#include "base/files/write.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return text;
}

Error unseen(const fs::path& path, const std::string& cause) {
  return {"resume", path.string(), cause, "mend that first: what cannot be looked at may be the newest"};
}

// Whether there is nothing of this name. A link to nowhere is something: a disk may be missing behind it.
bool is_none(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() == fs::file_type::not_found;
}

// What is in a folder; nothing if there is no such folder. Only then: one that cannot be listed is not empty.
Result<std::vector<fs::path>> entries_of(const fs::path& folder) {
  std::vector<fs::path> found;
  if (is_none(folder)) return found;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) found.push_back(at->path());
  if (error) return unseen(folder, "cannot be listed: " + error.message());
  return found;
}

struct Dated {
  fs::file_time_type time;
  fs::path path;
};

// `last`, the one before it, then the others by age: a copied run has times that tell nothing of the first
// two.
Result<std::vector<Dated>> checkpoints_of(const fs::path& run) {
  const auto rank = [](const fs::path& path) {
    return path.filename() == "last.ckpt" ? 0 : path.filename() == "previous.ckpt" ? 1 : 2;
  };
  const Result<std::vector<fs::path>> entries = entries_of(run / "checkpoints");
  if (!entries) return entries.error();
  std::vector<Dated> found;
  for (const fs::path& path : *entries) {
    if (path.extension() != ".ckpt") continue;
    std::error_code error;
    const fs::file_time_type time = fs::last_write_time(path, error);
    if (error && is_none(path)) continue;  // another process has replaced it just now
    if (error) return unseen(path, error.message());
    found.push_back({time, path});
  }
  std::sort(found.begin(), found.end(), [&](const Dated& a, const Dated& b) {
    const int first = rank(a.path), second = rank(b.path);
    return first != second ? first < second : a.time > b.time;
  });
  return found;
}

// Whether a folder's name is the one that make_run_folder gives: <stem>-<date>-<time>, perhaps with a number.
// The runs of x-small.toml begin like those of x.toml.
bool is_run_of(const std::string& stem, const std::string& name) {
  if (!name.starts_with(stem)) return false;
  constexpr std::string_view form = "-00000000-000000";
  std::string rest = name.substr(stem.size());
  for (char& c : rest)
    if (c >= '0' && c <= '9') c = '0';
  if (!rest.starts_with(form)) return false;
  rest.erase(0, form.size());
  return rest.empty() ||
         (rest.size() > 1 && rest[0] == '-' && rest.find_first_not_of('0', 1) == std::string::npos);
}

Result<fs::path> newest_run(const Config& c, const fs::path& config_file) {
  if (!c.log.name.empty()) return c.log.dir / c.log.name;
  const Result<std::vector<fs::path>> entries = entries_of(c.log.dir);
  if (!entries) return entries.error();
  Dated newest;
  for (const fs::path& run : *entries) {
    std::error_code error;
    if (!is_run_of(config_file.stem().string(), run.filename().string())) continue;
    const bool folder = fs::is_directory(run, error);
    if (error && !is_none(run)) return unseen(run, error.message());
    if (!folder) continue;
    const Result<std::vector<Dated>> checkpoints = checkpoints_of(run);
    if (!checkpoints) return checkpoints.error();
    for (const Dated& checkpoint : *checkpoints)
      if (newest.path.empty() || checkpoint.time > newest.time) newest = {checkpoint.time, run};
  }
  return newest.path;
}

// How long the first so many lines are. What follows the last end of line is no line.
struct Start {
  std::size_t lines = 0;
  std::uintmax_t bytes = 0;
};
Result<Start> first_lines(const fs::path& file, std::size_t lines) {
  const Result<std::unique_ptr<RecordLines>> opened = RecordLines::open("resume", file);
  if (!opened) return opened.error();
  Start start;
  if (!*opened) return start;
  for (std::string line; start.lines < lines; ++start.lines) {
    const Result<bool> more = (*opened)->next(line);
    if (!more) return more.error();
    if (!*more) break;
    start.bytes += line.size() + 1;
  }
  return start;
}

// The first of the names for a run that `take` takes.
template <class Take>
Result<fs::path> first_name(const Config& c, const fs::path& config_file, const fs::path& origin,
                            const Take& take) {
  std::error_code error;
  const bool own_name = !c.log.name.empty();
  const bool of_origin = !origin.empty() && fs::equivalent(c.log.dir / c.log.name, origin, error);
  const std::string name = own_name ? c.log.name : config_file.stem().string() + "-" + time_text();
  fs::create_directories(c.log.dir, error);
  for (int again = 1;; ++again) {
    const fs::path folder = c.log.dir / (again == 1 ? name : name + "-" + std::to_string(again));
    if (!error && take(folder, error)) return folder;
    if (error) return Error{"run folder", folder.string(), error.message(), "choose another log.dir"};
    if ((own_name && !of_origin) || again == 10'000)
      return Error{"run folder", folder.string(), "is there already, and a run is never overwritten",
                   "choose another log.name, or go on with --resume auto"};
  }
}

}  // namespace

Result<fs::path> make_run_folder(const Config& c, const fs::path& config_file) {
  return first_name(c, config_file, {}, [](const fs::path& folder, std::error_code& error) {
    if (!fs::create_directory(folder, error)) return false;
    fs::create_directory(folder / "checkpoints", error);
    // A checkpoint that is on the disk is of no use in a folder that is not.
    if (!error && (!sync_folder(folder) || !sync_folder_of(folder)))
      error = std::error_code(errno, std::generic_category());
    if (!error) return true;
    std::error_code ignored;
    fs::remove(folder / "checkpoints", ignored);
    fs::remove(folder, ignored);
    return false;
  });
}

Result<fs::path> name_of_fork(const Config& c, const fs::path& config_file, const fs::path& origin) {
  return first_name(c, config_file, origin,
                    [](const fs::path& folder, std::error_code&) { return is_none(folder); });
}

Result<std::unique_ptr<Descriptor>> lock_run_folder(const fs::path& folder) {
  auto lock = std::make_unique<Descriptor>(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock->get() < 0) return Error{"run folder", folder.string(), std::strerror(errno), ""};
  if (flock(lock->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Error{"run folder", folder.string(), "another process is writing to this run",
                 "wait for it or stop it"};
  return lock;  // held, unless the file system has no locks
}

Status write_config(const fs::path& run, const std::string& text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return replace_file("run folder", run / "config.toml", {&part, 1});
}

Result<fs::path> folder_to_resume(const std::string& what, const Config& c, const fs::path& config_file) {
  if (what == "auto") return newest_run(c, config_file);
  const fs::path file = fs::absolute(what).lexically_normal();
  std::error_code error;
  if (!fs::exists(file, error))
    return Error{"resume", what, error ? error.message() : "No such file or directory", "check the path"};
  if (file.parent_path().filename() != "checkpoints")
    return Error{"resume", what, "is not in a run's checkpoints/ folder",
                 "give the checkpoint where the run wrote it"};
  return file.parent_path().parent_path();
}

Result<std::vector<fs::path>> lists_of_former_ranks(const fs::path& run, int world) {
  const Result<std::vector<fs::path>> all = entries_of(run);
  if (!all) return all.error();
  std::vector<fs::path> former;
  for (const fs::path& file : *all) {
    int rank = 0, end = 0;
    const std::string name = file.filename().string();
    if (std::sscanf(name.c_str(), "quarantine.rank%9d.jsonl%n", &rank, &end) == 1 &&
        static_cast<std::size_t>(end) == name.size() && rank >= world)
      former.push_back(file);
  }
  return former;
}

Result<bool> is_run_there(const fs::path& run) {
  if (run.empty() || is_none(run)) return false;
  std::error_code error;
  if (fs::is_directory(run, error)) return true;
  return Error{"run folder", run.string(), error ? error.message() : "is not a folder",
               "choose another log.name"};
}

Result<std::optional<Resume>> find_resume(const std::string& what, const fs::path& run,
                                          const Expected& expected) {
  std::optional<Resume> found;
  if (what != "auto") {
    Result<Snapshot> snapshot = read_checkpoint(what, expected);
    if (!snapshot) return snapshot.error();
    found = Resume{std::move(*snapshot), {}};
    return found;
  }
  std::vector<Resume::Damaged> damaged;
  const Result<std::vector<Dated>> checkpoints = checkpoints_of(run);
  if (!checkpoints) return checkpoints.error();
  for (const auto& [time, path] : *checkpoints) {
    bool is_damaged = false;
    Result<Snapshot> snapshot = read_checkpoint(path, expected, &is_damaged);
    if (snapshot) {
      found = Resume{std::move(*snapshot), std::move(damaged)};
      return found;
    }
    if (!is_damaged) return snapshot.error();  // it may be the newest, and sound
    damaged.push_back({path, snapshot.error().text()});
  }
  if (damaged.empty()) return found;
  std::string all;
  for (const Resume::Damaged& d : damaged) all += "\n  " + d.reason;
  return Error{"resume", run.string(), "every checkpoint is damaged:" + all,
               "start anew without --resume under another log.name, or move the damaged files away"};
}

Status set_aside(const fs::path& damaged) {
  fs::path aside = damaged;
  aside += ".damaged";
  std::error_code error;
  fs::rename(damaged, aside, error);
  if (error) return Error{"resume", damaged.string(), "cannot be renamed: " + error.message(), ""};
  return Done{};
}

Result<std::size_t> cut_lines(const fs::path& file, std::size_t lines) {
  const Result<Start> start = first_lines(file, lines);
  if (!start) return start.error();
  if (!is_none(file) && !cut_file(file, start->bytes))
    return Error{"resume", file.string(), std::strerror(errno), ""};
  return start->lines;
}

Status copy_lines(const fs::path& from, const fs::path& to, std::size_t lines) {
  const Result<Start> start = first_lines(from, lines);
  if (!start) return start.error();
  return start->lines == 0 ? Status(Done{}) : copy_file("run folder", from, to, start->bytes);
}

}  // namespace sluice
