#include "run/train/fork.hpp"

#include "base/files/append.hpp"
#include "base/files/durable.hpp"
#include "base/files/record_lines.hpp"
#include "run/train/bad_images.hpp"
#include "run/train/run_folder.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view origin_start = "# forked from ";

// A path may have a line break in it.
std::string one_line(const std::string& text) {
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

// Piece by piece: the records of a long run are many.
Status carry_lines(const fs::path& from, const fs::path& to, std::uintmax_t bytes, const std::string& more) {
  Status copied = bytes > 0 ? copy_file("run folder", from, to, bytes) : replace_file("run folder", to, {});
  if (!copied) return copied;
  std::error_code unknown;
  if (fs::file_size(to, unknown) != bytes || unknown)
    return Error{"run folder", from.string(), "was cut while it was copied", "look who writes to that run"};
  const Result<std::shared_ptr<AppendFile>> file = AppendFile::open(to.string());
  if (!file) return file.error();
  Status appended = (*file)->append(more);
  return appended ? (*file)->sync() : appended;
}

Result<KeptRecords> carry_records(const ForkOptions& o) {
  const fs::path metrics = o.from / "metrics.jsonl";
  const RecordPosition at = o.position.among_records();
  Result<KeptRecords> kept = kept_records(metrics, at);
  if (!kept) return kept;
  const std::string gap = kept->records < at.records ? gap_line(at, *kept) : "";
  if (Status carried =
          carry_lines(metrics, o.to / "metrics.jsonl", kept->bytes, gap + fork_line(at, o.checkpoint.source));
      !carried)
    return carried.error();
  return kept;
}

Status carry_quarantine(const ForkOptions& o) {
  if (Status copied =
          copy_lines(o.from / quarantine_name(0), o.to / quarantine_name(0), o.position.bad.lines);
      !copied)
    return copied;
  const Result<std::vector<fs::path>> former = lists_of_former_ranks(o.from, o.world);
  if (!former) return former.error();
  for (const fs::path& file : *former)
    if (Status copied = copy_quarantine(file, o.to / file.filename(), o.next); !copied) return copied;
  return Done{};
}

// Under the names that the checkpoint knows them by. One that is gone by now is not missed.
Status carry_checkpoints(const ForkOptions& o) {
  const fs::path from = o.from / "checkpoints", to = o.to / "checkpoints", last = to / "last.ckpt";
  const std::string own = fs::path(o.checkpoint.source).filename().string();
  bool is_best = false;
  std::size_t taken = 0;
  for (const Keeper::Best& best : o.position.best) {
    if (o.position.monitor != o.monitor || taken == o.keep || !is_best_name(best.file)) continue;
    std::error_code ignored;
    if (fs::status(from / best.file, ignored).type() == fs::file_type::not_found) continue;
    const bool itself = best.file == own;
    const Status brought = itself ? write_checkpoint(o.checkpoint, to / best.file)
                                  : copy_file("run folder", from / best.file, to / best.file);
    if (!brought) return brought;
    is_best = is_best || itself;
    ++taken;
  }
  if (is_best && link_file(to / own, last)) return Done{};
  return write_checkpoint(o.checkpoint, last);
}

}  // namespace

Result<KeptRecords> fill_fork(const ForkOptions& o) {
  Result<KeptRecords> kept = carry_records(o);
  if (!kept) return kept;
  if (Status brought = carry_quarantine(o); !brought) return brought.error();
  if (Status brought = carry_checkpoints(o); !brought) return brought.error();
  return kept;
}

std::string origin_line(const Snapshot& checkpoint, const Position& position) {
  return std::string(origin_start) + one_line(checkpoint.source) + ", epoch " +
         std::to_string(position.epoch) + ", step " + std::to_string(position.step);
}

Result<std::string> origin_of(const fs::path& run) {
  const fs::path file = run / "config.toml";
  if (std::error_code none; !fs::is_regular_file(file, none)) return std::string();  // it is replaced
  const Result<std::unique_ptr<RecordLines>> lines = RecordLines::open("resume", file);
  if (!lines) return lines.error();
  if (!*lines) return std::string();
  for (std::string line;;) {
    const Result<bool> more = (*lines)->next(line);
    if (!more) return more.error();
    if (!*more || !line.starts_with('#')) return std::string();
    if (line.starts_with(origin_start)) return line;
  }
}

}  // namespace sluice
