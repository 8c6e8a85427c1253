#include "run/train/records.hpp"

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/bounded_json.hpp"
#include "base/files/append.hpp"
#include "base/files/durable.hpp"
#include "base/files/record_lines.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

// The beginning of a line as json_line writes it.
struct Head {
  std::string event;
  std::int64_t step = 0;
};

std::optional<Head> head_of(const std::string& line) {
  char event[16];
  long long epoch = 0, step = 0;
  if (std::sscanf(line.c_str(), R"({"event":"%15[^"]","epoch":%lld,"step":%lld)", event, &epoch, &step) != 3)
    return std::nullopt;
  return Head{event, step};
}

// How many records a line stands for. One that somebody else wrote is taken for one of ours.
std::size_t weight_of(const std::optional<Head>& head, const std::string& line) {
  if (!head || (head->event != "gap" && head->event != "fork")) return 1;
  if (head->event == "fork") return 0;
  const nlohmann::json parsed = parse_object(line);
  const auto records = parsed.find("records");
  if (records == parsed.end() || !records->is_object()) return 0;
  const auto missing = records->find("missing");
  return missing != records->end() && missing->is_number_unsigned() ? missing->get<std::size_t>() : 0;
}

bool is_later(const std::optional<Head>& head, const RecordPosition& at) {
  if (!head) return false;
  if (head->step != at.step) return head->step > at.step;
  return head->event == "end" || (head->event == "val" && !at.validated);
}

bool is_record(const std::string& name) {
  return name == "metrics.jsonl" || name == "train.log" || name == "config.toml" || name == "graph.dot" ||
         (name.starts_with("quarantine.") && name.ends_with(".jsonl")) ||
         name.starts_with("events.out.tfevents.");
}

Error failure(const fs::path& path, const std::error_code& error) {
  return {"run folder", path.string(), error.message(), "choose another log.name"};
}

}  // namespace

Result<KeptRecords> kept_records(const fs::path& metrics, const RecordPosition& at) {
  const Result<std::unique_ptr<RecordLines>> lines = RecordLines::open("resume", metrics);
  if (!lines) return lines.error();
  KeptRecords kept;
  if (!*lines) return kept;
  for (std::string line;;) {
    const Result<bool> more = (*lines)->next(line);
    if (!more) return more.error();
    if (!*more) break;
    const std::optional<Head> head = head_of(line);
    const std::size_t weight = weight_of(head, line);
    if (is_later(head, at) || weight > at.records - kept.records) break;
    kept.bytes += line.size() + 1;
    kept.records += weight;
    if (head && (head->event == "gap" || head->event == "fork")) continue;
    ++kept.lines;
    if (head) kept.last_step = head->step;
  }
  return kept;
}

std::string gap_line(const RecordPosition& at, const KeptRecords& kept) {
  const nlohmann::ordered_json line = {
      {"event", "gap"},
      {"epoch", at.epoch},
      {"step", at.step},
      {"records",
       {{"missing", at.records - kept.records}, {"after_step", std::max<std::int64_t>(kept.last_step, 0)}}}};
  return line.dump() + "\n";
}

std::string fork_line(const RecordPosition& at, const std::string& from) {
  const nlohmann::ordered_json line = {
      {"event", "fork"}, {"epoch", at.epoch}, {"step", at.step}, {"from", from}};
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<KeptRecords> cut_records(const fs::path& metrics, const RecordPosition& at) {
  Result<KeptRecords> kept = kept_records(metrics, at);
  if (!kept) return kept;
  std::error_code error;
  if (fs::exists(metrics, error) && !cut_file(metrics, kept->bytes))
    error = std::error_code(errno, std::generic_category());
  if (error && error != std::errc::no_such_file_or_directory)
    return Error{"resume", metrics.string(), "cannot be cut back: " + error.message(), ""};
  if (kept->records == at.records) return kept;
  const Result<std::shared_ptr<AppendFile>> file = AppendFile::open(metrics.string());
  if (!file) return file.error();
  if (Status told = (*file)->append(gap_line(at, *kept)); !told) return told.error();
  return kept;
}

Result<std::vector<fs::path>> former_records(const fs::path& run) {
  std::vector<fs::path> found;
  bool any = false;
  std::error_code error;
  fs::directory_iterator entry(run, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!is_record(entry->path().filename().string())) continue;
    std::error_code unknown;
    any = any || entry->file_size(unknown) > 0 || unknown;
    found.push_back(entry->path());
  }
  if (error) return failure(run, error);
  if (!any) found.clear();
  return found;
}

Result<fs::path> set_records_aside(const fs::path& run, const std::vector<fs::path>& files) {
  std::error_code error;
  fs::path aside;
  for (int number = 1;; ++number) {
    aside = run / ("before-" + std::to_string(number));
    if (fs::create_directory(aside, error)) break;
    std::error_code unknown;
    if (error && !fs::exists(fs::symlink_status(aside, unknown))) return failure(aside, error);
  }
  for (const fs::path& file : files) {
    fs::rename(file, aside / file.filename(), error);
    if (error) return failure(file, error);
  }
  return aside;
}

}  // namespace sluice
