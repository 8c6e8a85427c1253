#include "run/launch/signals.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <ctime>

namespace sluice {
namespace {

std::atomic<int> caught{0};
std::atomic<bool> asked{false};
std::atomic<long> first_at{0};  // milliseconds
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<long>::is_always_lock_free);

// What comes within half a second is the same wish told twice: `timeout`, for one, signals process and group.
void handle(int signal) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const long now = time.tv_sec * 1000 + time.tv_nsec / 1'000'000 + 1;
  long before = 0;
  if (first_at.compare_exchange_strong(before, now))
    caught = signal;
  else if (now - before > 500)
    _exit(128 + signal);
}

}  // namespace

bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (!is_ignored(SIGHUP)) sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write error like any other
  heed_questions();
}

void heed_questions() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked = true; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

int caught_signal() { return caught.load(); }
bool asked_by_signal() { return asked.exchange(false); }

}  // namespace sluice
