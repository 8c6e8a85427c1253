// The run's voice, on a thread of its own. Records and messages wait in one bounded queue and are never lost:
// who puts into a full queue waits, and the wait is counted. Progress keeps only its newest state and holds
// nobody up.
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

#include "base/files/line.hpp"
#include "base/result.hpp"
#include "nodes/record/metrics.hpp"
#include "nodes/record/progress.hpp"

namespace sluice {

enum class Level { info, warning, error };

struct LogOptions {
  std::ostream* screen = nullptr;   // progress and messages; none = files only. Must outlive the log
  bool terminal = false;            // whether `screen` understands "\r"; else plain lines
  std::function<int()> width = {};  // of the terminal, asked at each redraw; 80 if not given
  std::size_t capacity = 256;       // records and messages in the queue
  std::chrono::milliseconds redraw{100};
  std::chrono::milliseconds plain{5000};  // between plain lines
  LineSink metrics = {};  // one call per record, and none after one that failed; none = not written
  LineSink text = {};     // messages and plain lines, with time stamps; none = not written
  std::function<Status(const Record&)> events = {};  // each record once more, after `metrics`
  std::function<Status()> sync = {};                 // brings what the sinks have written to the disk
  // Called once, on the log's thread, at the first write that fails. May call message(), never close().
  std::function<void(const Error&)> on_error = {};
};

class Log {
 public:
  explicit Log(LogOptions options);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();  // closes

  void put(Record record);                      // waits while the queue is full
  void message(Level level, std::string text);  // waits while the queue is full
  void progress(Progress progress);             // never waits
  void finish(Progress progress);  // last state of a phase: in order with the messages, never skipped

  // Waits until all that was put before is written and on the disk, but no longer than `at_most` (a terminal
  // that was stopped holds the log up); the first write error of the whole run, if any. Needs no place in the
  // queue. Not for sinks and on_error, which run on the thread waited for.
  Status sync(std::chrono::milliseconds at_most = std::chrono::hours(24));

  // Writes out all that was put, to the disk, and ends the thread; the first write error of the whole run, if
  // any. What is put later is not written.
  Status close();

  [[nodiscard]] std::size_t waiting() const;              // entries in the queue
  [[nodiscard]] std::chrono::nanoseconds waited() const;  // all callers together, for a place in the queue

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The columns of the terminal behind a file descriptor; 80 if it cannot be told.
[[nodiscard]] int terminal_width(int descriptor);

}  // namespace sluice
