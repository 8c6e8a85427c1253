#include "run/launch/signal_pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace sluice {
namespace {

volatile int writing_end = -1;

}  // namespace

SignalPipe::SignalPipe() {
  if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
  writing_end = ends_[1];
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int signal) {
    const int before = errno;
    const char number = static_cast<char>(signal);
    (void)!write(writing_end, &number, 1);  // a full pipe wakes us all the same
    errno = before;
  };
  for (std::size_t i = 0; i < heeded.size(); ++i) {
    sigaction(heeded[i], &action, &before_[i]);
    // Under nohup it stays ignored, here and in the ranks.
    if (heeded[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) sigaction(SIGHUP, &before_[i], nullptr);
  }
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, &pipe_before_);
}

SignalPipe::~SignalPipe() {
  for (std::size_t i = 0; i < heeded.size(); ++i) sigaction(heeded[i], &before_[i], nullptr);
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  for (const int fd : ends_) close(fd);
}

std::optional<int> SignalPipe::next() const {
  char signal = 0;
  if (read(ends_[0], &signal, 1) != 1) return std::nullopt;
  return signal;
}

}  // namespace sluice
