#include "base/process/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/process/spawn.hpp"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  ~Pipe() {
    for (int& fd : ends) shut(fd);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void shut(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  // Takes what is there; closes at the end.
  void drain(std::string& into) {
    char buffer[4096];
    const ssize_t got = read(ends[0], buffer, sizeof buffer);
    if (got > 0)
      into.append(buffer, static_cast<std::size_t>(got));
    else if (got == 0 || errno != EINTR)
      shut(ends[0]);
  }
  int ends[2];
};

}  // namespace

ChildEnd run_child(const ChildOptions& o) {
  ChildEnd end;
  Pipe out, err;
  const auto [pid, error] = spawn({.program = o.program,
                                   .words = o.words,
                                   .descriptors = {{out.ends[1], 1}, {err.ends[1], 2}},
                                   .own_group = true});  // Ctrl-C is the parent's
  if (error != 0) {
    end.err = std::strerror(error);
    return end;
  }
  Pipe::shut(out.ends[1]);
  Pipe::shut(err.ends[1]);
  const auto begin = Clock::now();
  bool killed = false;
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    pollfd fds[] = {{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}};
    poll(fds, 2, 100);
    if (fds[0].revents != 0) out.drain(end.out);
    if (fds[1].revents != 0) err.drain(end.err);
    if (killed) continue;
    end.too_long = Clock::now() - begin > o.limit;
    end.stopped = o.stop();
    if (end.too_long || end.stopped) killed = kill(pid, SIGKILL) == 0;
  }
  int status = 0;
  rusage used{};
  while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR) {
  }
  end.code = exit_code(status);
  end.peak_rss = static_cast<std::size_t>(used.ru_maxrss) * 1024;
  return end;
}

}  // namespace sluice
