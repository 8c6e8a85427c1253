// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGCHLD as numbers that come through a pipe, for one who waits in
// poll().
#pragma once

#include <array>
#include <csignal>
#include <optional>

namespace sluice {

// While this lives; SIGPIPE is ignored as well. One at a time: handlers know no objects.
class SignalPipe {
 public:
  SignalPipe();
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  [[nodiscard]] int fd() const { return ends_[0]; }
  [[nodiscard]] std::optional<int> next() const;  // none: no other has come yet

 private:
  static constexpr std::array heeded{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
  int ends_[2] = {-1, -1};
  std::array<struct sigaction, heeded.size()> before_{};
  struct sigaction pipe_before_ {};
};

}  // namespace sluice
