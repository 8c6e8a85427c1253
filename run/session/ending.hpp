// How a run came to its end, as one value, and the exit code that this makes.
#pragma once

#include <optional>

#include "base/result.hpp"
#include "graph/figures/registry.hpp"

namespace sluice {

enum ExitCode { exit_done = 0, exit_failed = 1, exit_usage = 2 };

struct Ending {
  enum class Kind {
    finished,  // every batch went through step
    enough,    // who takes the batches wanted no more
    stopped,   // by a signal
    failed,
    refused,  // it could not even begin
  };
  Kind kind = Kind::finished;
  std::optional<Error> failure = {};  // of what failed or was refused
  int signal = 0;                     // that stopped it
  bool abandoned = false;             // a read never came back, and its thread is left behind
  GraphFigures figures = {};          // the final figures

  [[nodiscard]] static Ending refused(Error why);
  // Something went wrong once the run was over, such as the last save. The first failure is the one told.
  void fail(const Error& error);
  void stopped_by(int signal);  // what came to an end was stopped, after all; no less a failure

  [[nodiscard]] bool well() const { return kind == Kind::finished || kind == Kind::enough; }
  [[nodiscard]] int code() const;  // 0 done, 1 failed, 2 refused, 128 + signal
};

}  // namespace sluice
