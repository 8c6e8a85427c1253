#include "base/process/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

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

int start(const ChildOptions& o, int out, int err, pid_t& pid) {
  std::vector<char*> words;
  for (const std::string& word : o.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);  // Ctrl-C is the parent's
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawn(&pid, o.program.c_str(), &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

ChildEnd run_child(const ChildOptions& o) {
  ChildEnd end;
  Pipe out, err;
  pid_t pid = 0;
  if (const int error = start(o, out.ends[1], err.ends[1], pid)) {
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
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  end.peak_rss = static_cast<std::size_t>(used.ru_maxrss) * 1024;
  return end;
}

}  // namespace sluice
