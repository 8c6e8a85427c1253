#include "run/launch/launch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/files/write.hpp"
#include "base/process/prefixed_lines.hpp"
#include "base/process/spawn.hpp"
#include "model/ranks/listener.hpp"
#include "run/launch/signal_pipe.hpp"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* launcher_variable = "SLUICE_LAUNCHER";

Error no_process(int rank, int error) {
  return {"launch", "rank " + std::to_string(rank), std::string("cannot be started: ") + std::strerror(error),
          ""};
}

// 128 random bits.
Result<std::string> random_text() {
  std::array<unsigned char, 16> bits{};
  if (getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size()))
    return Error{"launch", "", std::string("the kernel gives no random numbers: ") + std::strerror(errno),
                 ""};
  std::string text;
  for (const unsigned char byte : bits)
    for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  return text;
}

// The exit code of a rank that was told to end, and saved.
bool is_stop(int code) { return code == 128 + SIGINT || code == 128 + SIGTERM || code == 128 + SIGHUP; }

// One rank's process, with the reading ends of its output.
struct Child {
  int rank = 0;
  pid_t pid = 0;
  bool alive = true, stopped = false;
  PrefixedLines out, err;
};

class Launcher {
 public:
  // The listener, if there is one, is for rank 0.
  Launcher(const LaunchOptions& options, std::optional<Listener> listener)
      : o_(options), listener_(std::move(listener)) {}

  int run() {
    for (int local = 0; local < o_.hosts.devices; ++local)
      if (const int error = start(local)) {
        say(no_process(rank_of(local), error).text());
        fail(1);
        break;
      }
    listener_.reset();  // it ends with rank 0
    while (std::ranges::any_of(children_, &Child::alive)) {
      listen();
      while (const std::optional<int> signal = signals_.next()) heed(*signal);
      reap();
      enforce();
    }
    for (Child& child : children_) {
      child.out.drain();
      child.err.drain();
    }
    return code_;
  }

 private:
  [[nodiscard]] int rank_of(int local) const { return o_.hosts.node_rank * o_.hosts.devices + local; }

  int start(int local) {
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0) return errno;
    if (pipe2(err, O_CLOEXEC) != 0) {
      const int error = errno;
      for (const int fd : out) close(fd);
      return error;
    }
    const auto [pid, error] = spawn_rank(local, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    const std::string prefix = "[" + std::to_string(rank_of(local)) + "] ";
    Child child{rank_of(local), pid, true, false, {out[0], o_.out, prefix}, {err[0], o_.err, prefix}};
    if (error == 0) children_.push_back(std::move(child));
    return error;
  }

  Spawned spawn_rank(int local, int out, int err) const {
    Environment environment = this_environment();
    for (auto& [name, value] : rank_environment(o_.hosts, local)) environment[name] = value;
    environment[launcher_variable] = std::to_string(getpid());
    environment.erase(listener_variable);
    SpawnOptions child{.program = o_.program, .words = o_.words, .descriptors = {{out, 1}, {err, 2}}};
    if (listener_ && rank_of(local) == 0) {
      environment[listener_variable] = std::to_string(listener_->descriptor());
      child.descriptors.push_back({listener_->descriptor(), listener_->descriptor()});
    }
    child.environment.emplace();
    for (const auto& [name, value] : environment) child.environment->push_back(name + "=" + value);
    child.own_group = true;  // Ctrl-C comes through the launcher, and once
    child.default_signals = {SIGPIPE};
    return spawn(child);
  }

  // Waits for output or a signal, and passes output on.
  void listen() {
    std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0}};
    std::vector<PrefixedLines*> readers;
    for (Child& child : children_)
      for (PrefixedLines* lines : {&child.out, &child.err})
        if (lines->open()) {
          fds.push_back({lines->fd(), POLLIN, 0});
          readers.push_back(lines);
        }
    poll(fds.data(), fds.size(), deadline_ ? 100 : 1000);
    for (std::size_t i = 0; i < readers.size(); ++i)
      if (fds[i + 1].revents != 0) readers[i]->pass_on();
  }

  void heed(int signal) {
    if (signal == SIGCHLD) return;
    if (signal != SIGUSR1) told_ = signal;  // a question; each rank answers for itself
    kill_all(signal);
  }

  void reap() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
      const auto child = std::ranges::find(children_, pid, &Child::pid);
      if (child == children_.end()) continue;
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        child->stopped = WIFSTOPPED(status);
        continue;
      }
      child->alive = false;
      ended(*child, status);
    }
  }

  void ended(Child& child, int status) {
    child.out.drain();
    child.err.drain();
    const int code = exit_code(status);
    if (code == 0) return;
    const bool as_told = told_ != 0 && code == 128 + told_;
    // Ranks agree to stop when one of them is told to: the others are on their way out, and saving.
    const bool agreed = WIFEXITED(status) && is_stop(code);
    if (as_told || agreed) {
      if (code_ == 0) code_ = code;
      if (!as_told && !deadline_) deadline_ = Clock::now() + o_.grace;
      return;
    }
    if (code_ == 0 || is_stop(code_)) {
      const char* name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : nullptr;
      say("launch: rank " + std::to_string(child.rank) +
          (name ? std::string(" was killed by SIG") + name
                : " ended with exit code " + std::to_string(code)) +
          "; ending the others");
    }
    fail(code);
  }

  // The others are told once: a second signal would end them on the spot, in the middle of saving.
  void fail(int code) {
    if (code_ == 0 || is_stop(code_)) code_ = code;
    if (deadline_) return;
    deadline_ = Clock::now() + o_.grace;
    if (told_ == 0) kill_all(SIGTERM);
  }

  // A process that is frozen has no use for its time.
  void enforce() {
    if (!deadline_) return;
    for (const Child& child : children_)
      if (child.alive && (child.stopped || Clock::now() > *deadline_)) kill(child.pid, SIGKILL);
  }

  void kill_all(int signal) {
    for (const Child& child : children_)
      if (child.alive) kill(child.pid, signal);
  }

  void say(const std::string& text) const { write_all(o_.err, "sluice: " + text + "\n"); }

  const LaunchOptions& o_;
  std::optional<Listener> listener_;
  SignalPipe signals_;
  std::vector<Child> children_;
  std::optional<Clock::time_point> deadline_;
  int code_ = 0, told_ = 0;  // the exit code; the signal that came from outside
};

}  // namespace

int launch(const LaunchOptions& options) {
  if (options.hosts.nodes > 1) return Launcher(options, std::nullopt).run();
  LaunchOptions o = options;
  const auto refuse = [&](const Error& error) {
    write_all(o.err, "sluice: " + error.text() + "\n");
    return 1;
  };
  const Result<std::string> secret = random_text();
  if (!secret) return refuse(secret.error());
  Result<Listener> listener = listen_on(o.hosts.address, o.hosts.port, Audience::this_host);
  if (!listener) return refuse(listener.error());
  o.hosts.secret = *secret;
  o.hosts.port = listener->port();
  return Launcher(o, std::move(*listener)).run();
}

bool follow_launcher(const Environment& environment) {
  const auto found = environment.find(launcher_variable);
  if (found == environment.end()) return false;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (std::to_string(getppid()) != found->second) std::raise(SIGTERM);  // it was gone before
  return true;
}

}  // namespace sluice
