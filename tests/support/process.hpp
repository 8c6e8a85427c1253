// Runs a program and collects what it prints; can act once it has printed something.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/process/spawn.hpp"

namespace sluice::test {

struct Ended {
  int code = -1;  // as a shell gives it: 128 + signal if it was killed
  std::string out, err;
  std::size_t peak_bytes = 0;  // resident at most
};

// Something to do once stderr contains a text, or once `ready` says so; it is asked every other millisecond.
struct When {
  std::string err_has;
  std::function<void(pid_t)> act;
  std::function<bool()> ready = {};
};

inline When send_signal(int signal, std::string err_has) {
  return {std::move(err_has), [signal](pid_t child) { kill(child, signal); }};
}
inline When send_signal(int signal, std::function<bool()> ready) {
  return {"", [signal](pid_t child) { kill(child, signal); }, std::move(ready)};
}

// `folder` is where it runs. Killed after two minutes: a hang fails the test instead of holding it up.
inline Ended run_program(const std::vector<std::string>& words, const std::filesystem::path& folder,
                         When when = {}) {
  int out[2], err[2];
  // Other threads start programs as well: those must not hold this one's pipes open.
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
  const auto [child, failed] = spawn(
      {.program = words[0], .words = words, .descriptors = {{out[1], 1}, {err[1], 2}}, .folder = folder});
  close(out[1]);
  close(err[1]);
  Ended ended;
  if (failed == 0) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    pollfd fds[] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
    std::string* const texts[] = {&ended.out, &ended.err};
    for (int open = 2; open > 0;) {
      poll(fds, 2, when.act && when.ready ? 2 : 1000);
      if (std::chrono::steady_clock::now() > deadline) kill(child, SIGKILL);
      for (int i = 0; i < 2; ++i) {
        if (fds[i].fd < 0 || fds[i].revents == 0) continue;
        char buffer[4096];
        const ssize_t got = read(fds[i].fd, buffer, sizeof buffer);
        if (got > 0)
          texts[i]->append(buffer, static_cast<std::size_t>(got));
        else
          fds[i].fd = -1, --open;
      }
      if (when.act && (when.ready ? when.ready() : ended.err.find(when.err_has) != std::string::npos))
        std::exchange(when.act, nullptr)(child);
    }
    int status = 0;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    ended.peak_bytes = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
    ended.code = exit_code(status);
  }
  close(out[0]);
  close(err[0]);
  return ended;
}

}  // namespace sluice::test
