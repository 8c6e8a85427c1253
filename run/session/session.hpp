// One run of the graph with all that belongs to it: the pipeline and its ledger, the device that is fed, the
// log, signals, and how it ended. Every command that runs the graph does so through here, so that lifetimes
// and the rule about a read that never comes back are right once for all:
//  - The log's thread may stop the run, the feed holds the slots page-locked: log, feed and pipeline go in
//    this order.
//  - What a stuck thread may come back to outlives the session (see Pipeline), and the process is known to
//    leave by _exit (base/process/left_behind, cli/leave). The command goes on and tells its results first.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "graph/flow/pipeline.hpp"
#include "nodes/log.hpp"
#include "nodes/upload.hpp"
#include "run/launch/signals.hpp"
#include "run/session/ending.hpp"

namespace sluice {

class Session {
 public:
  // Signals are caught from now on. With a `feed` it is upload; without one the stages have their own.
  Session(const PipelineOptions& options, Stages stages, std::unique_ptr<DeviceFeed> feed = nullptr);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Before the run. A record that cannot be kept is lost work, and ends the run.
  Log& open_log(LogOptions options);

  // Opens the device and page-locks the slots; run() does it if nobody has before.
  Status prepare();

  struct Watch {
    std::function<void()> tick = [] {};  // about ten times a second, on run()'s thread
    // Once, before a tick; the run ends, if nothing is given here.
    std::function<void(int signal)> on_signal = nullptr;
    std::function<int()> signal = caught_signal;  // 0: none so far
  };
  [[nodiscard]] Ending run(const Watch& watch);
  [[nodiscard]] Ending run() { return run(Watch{}); }

  void enough();  // ends the run, which is no failure; on any thread

  [[nodiscard]] Pipeline& pipeline() { return pipeline_; }
  [[nodiscard]] Stop& stop() { return pipeline_.stop(); }
  [[nodiscard]] Log& log() { return *log_; }           // once opened
  [[nodiscard]] DeviceFeed& feed() { return *feed_; }  // if there is one

 private:
  Pipeline pipeline_;
  std::unique_ptr<DeviceFeed> feed_;
  std::optional<Log> log_;
  std::atomic<bool> enough_{false};
  std::optional<Status> prepared_;  // once tried
};

}  // namespace sluice
