#include "cli/train/log.hpp"

#include <unistd.h>

#include <iostream>

#include "nodes/record/tensorboard.hpp"

namespace sluice {

Result<LogOptions> log_options(const RunFacts& o, const std::optional<Position>& resumed,
                               std::size_t capacity) {
  LogOptions options;
  options.capacity = capacity;
  options.screen = &std::cerr;
  options.terminal = isatty(STDERR_FILENO) == 1;
  options.width = [] { return terminal_width(STDERR_FILENO); };
  if (!o.seat.first()) {  // it has only warnings and errors to tell
    options.terminal = false;
    return options;
  }
  const std::filesystem::path kept = o.folder / "metrics.jsonl";
  Result<std::shared_ptr<AppendFile>> metrics = open_lines(kept.string());
  if (!metrics) return metrics.error();
  Result<LineSink> text = append_to((o.folder / "train.log").string());
  if (!text) return text.error();
  options.sync = [file = *metrics] {
    Status synced = file->sync();
    return synced ? file->still_there() : synced;
  };
  options.metrics = lines_into(*metrics);
  options.text = std::move(*text);
  if (o.config.log.tensorboard) {
    const auto from = static_cast<std::int64_t>(resumed ? resumed->step : 0);
    const bool whole = resumed && !has_events(o.folder);  // those of a fork stayed where they were
    Result<std::shared_ptr<EventFile>> events = EventFile::open(o.folder, from, kept, whole);
    if (!events) return events.error();
    options.events = [file = *events](const Record& record) { return file->write(record); };
    options.sync = [metrics = options.sync, file = *events] {
      Status synced = metrics();
      return synced ? file->sync() : synced;
    };
  }
  return options;
}

}  // namespace sluice
