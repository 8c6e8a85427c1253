#include "cli/signals.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace sluice {
namespace {

std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free);

void handle(int signal) {
  int none = 0;
  if (!caught.compare_exchange_strong(none, signal)) _exit(128 + signal);
}

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write error like any other
}

int caught_signal() { return caught.load(); }

}  // namespace sluice
