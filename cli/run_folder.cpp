#include "cli/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

#include "graph/regular_file.hpp"

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

fs::file_time_type newest_checkpoint(const fs::path& run) {
  std::error_code ignored;
  fs::file_time_type newest = fs::file_time_type::min();
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", ignored))
    if (entry.path().extension() == ".ckpt") newest = std::max(newest, entry.last_write_time(ignored));
  return newest;
}

// `last`, the one before it, then the others by age: a copied run has times that tell nothing of the first
// two.
std::vector<fs::path> checkpoints_of(const fs::path& run) {
  const auto rank = [](const fs::path& path) {
    return path.filename() == "last.ckpt" ? 0 : path.filename() == "previous.ckpt" ? 1 : 2;
  };
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", ignored))
    if (entry.path().extension() == ".ckpt") found.emplace_back(entry.last_write_time(ignored), entry.path());
  std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    const int first = rank(a.second), second = rank(b.second);
    return first != second ? first < second : a.first > b.first;
  });
  std::vector<fs::path> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
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

fs::path newest_run(const Config& c, const fs::path& config_file) {
  if (!c.log.name.empty()) return c.log.dir / c.log.name;
  std::error_code ignored;
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(c.log.dir, ignored)) {
    if (!is_run_of(config_file.stem().string(), entry.path().filename().string())) continue;
    const auto time = newest_checkpoint(entry.path());
    if (time == fs::file_time_type::min()) continue;
    if (newest.empty() || time > newest_checkpoint(newest)) newest = entry.path();
  }
  return newest;
}

}  // namespace

Result<fs::path> make_run_folder(const Config& c, const fs::path& config_file) {
  const bool named = !c.log.name.empty();
  const std::string name = named ? c.log.name : config_file.stem().string() + "-" + time_text();
  std::error_code error;
  fs::create_directories(c.log.dir, error);
  for (int again = 1;; ++again) {
    const fs::path folder = c.log.dir / (again == 1 ? name : name + "-" + std::to_string(again));
    if (!error && fs::create_directory(folder, error)) {
      fs::create_directory(folder / "checkpoints", error);
      if (!error) return folder;
    }
    if (error) return Error{"run folder", folder.string(), error.message(), "choose another log.dir"};
    if (named || again == 10'000)
      return Error{"run folder", folder.string(), "is there already, and a run is never overwritten",
                   "choose another log.name, or go on with --resume auto"};
  }
}

Status lock_run_folder(const fs::path& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return Done{};
  const int error = errno;
  if (fd >= 0) close(fd);
  if (error == EWOULDBLOCK)
    return Error{"run folder", folder.string(), "another process is writing to this run",
                 "wait for it or stop it"};
  if (fd >= 0) return Done{};  // a file system without locks
  return Error{"run folder", folder.string(), std::strerror(error), ""};
}

Result<fs::path> folder_to_resume(const std::string& what, const Config& c, const fs::path& config_file) {
  if (what == "auto") return newest_run(c, config_file);
  const fs::path file = fs::absolute(what).lexically_normal();
  std::error_code error;
  if (!fs::exists(file, error)) return Error{"resume", what, "No such file or directory", "check the path"};
  if (file.parent_path().filename() != "checkpoints")
    return Error{"resume", what, "is not in a run's checkpoints/ folder",
                 "give the checkpoint where the run wrote it"};
  return file.parent_path().parent_path();
}

Result<std::optional<Resume>> find_resume(const std::string& what, const fs::path& run) {
  std::optional<Resume> found;
  if (what != "auto") {
    Result<Snapshot> snapshot = read_checkpoint(what);
    if (!snapshot) return snapshot.error();
    found = Resume{std::move(*snapshot), {}};
    return found;
  }
  std::vector<Resume::Damaged> damaged;
  for (const fs::path& path : checkpoints_of(run)) {
    bool is_damaged = false;
    Result<Snapshot> snapshot = read_checkpoint(path, &is_damaged);
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
  return Error{"resume", run.string(), "every checkpoint is damaged:" + all, "start anew without --resume"};
}

void set_aside(const fs::path& damaged) {
  fs::path aside = damaged;
  aside += ".damaged";
  std::error_code ignored;
  fs::rename(damaged, aside, ignored);
}

Result<std::size_t> cut_lines(const fs::path& file, std::size_t lines) {
  InputFile in(file.string());
  if (in.missing()) return std::size_t{0};
  if (!in.opened())
    return Error{"resume", file.string(), in.cause(), "remove it, or start anew without --resume"};
  std::uintmax_t keep = 0;
  std::size_t kept = 0;
  for (std::string line; kept < lines && std::getline(in, line) && !in.eof(); ++kept) keep += line.size() + 1;
  if (in.read_error() != 0)
    return Error{"resume", file.string(), std::strerror(in.read_error()), "check the disk"};
  std::error_code error;
  fs::resize_file(file, keep, error);
  if (error) return Error{"resume", file.string(), error.message(), ""};
  return kept;
}

}  // namespace sluice
