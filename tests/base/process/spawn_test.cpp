#include "base/process/spawn.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.hpp"

using namespace sluice;

namespace {

struct Ended {
  int code = -1;
  std::string out;
};

// Runs a script with `options`, and tells what it printed.
Ended run(SpawnOptions options, const std::string& script) {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  options.program = "sh";
  options.words = {"sh", "-c", script};
  options.descriptors.push_back({ends[1], 1});
  const auto [pid, error] = spawn(options);
  close(ends[1]);
  const Descriptor from(ends[0]);
  REQUIRE(error == 0);
  Ended ended;
  char buffer[512];
  for (ssize_t got; (got = read(from.get(), buffer, sizeof buffer)) > 0;)
    ended.out.append(buffer, static_cast<std::size_t>(got));
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  ended.code = exit_code(status);
  return ended;
}

}  // namespace

TEST_CASE("spawn: a name is looked for in PATH, and exit codes are a shell's") {
  const Ended ended = run({}, "echo hello; exit 7");
  CHECK(ended.out == "hello\n");
  CHECK(ended.code == 7);
  CHECK(run({}, "kill -TERM $$").code == 128 + SIGTERM);
}

TEST_CASE("spawn: a program that is not there is an error number") {
  CHECK(spawn({.program = "/nowhere", .words = {"nowhere"}}).error == ENOENT);
  CHECK(spawn({.program = "no-such-program-anywhere", .words = {"x"}}).error == ENOENT);
}

TEST_CASE("spawn: environment, folder and group are what was asked for") {
  CHECK(run({.environment = {{"PATH=/usr/bin:/bin", "COLOUR=red"}}}, "echo $COLOUR$HOME").out == "red\n");
  setenv("SLUICE_SPAWN_TEST", "mine", 1);
  CHECK(run({}, "echo $SLUICE_SPAWN_TEST").out == "mine\n");
  CHECK(run({.folder = "/usr"}, "pwd").out == "/usr\n");
  const std::string group = "cut -d' ' -f5 /proc/$$/stat; echo $$";
  const std::string own = std::to_string(getpgrp()) + "\n";
  CHECK(run({}, group).out.starts_with(own));
  const std::string apart = run({.own_group = true}, group).out;
  const std::size_t line = apart.find('\n');
  CHECK(apart.substr(0, line) + "\n" == apart.substr(line + 1));
}

TEST_CASE("spawn: open files are passed by number, and no others") {
  const Descriptor kept(open("/dev/null", O_RDONLY | O_CLOEXEC)), closed(dup(kept.get()));
  fcntl(closed.get(), F_SETFD, FD_CLOEXEC);
  const auto is_open = [](int fd) { return "[ -e /proc/self/fd/" + std::to_string(fd) + " ] && echo open"; };
  CHECK(run({.descriptors = {{kept.get(), kept.get()}}}, is_open(kept.get())).out == "open\n");
  CHECK(run({.descriptors = {{kept.get(), kept.get()}}}, is_open(closed.get())).out.empty());
}

TEST_CASE("spawn: a signal that is ignored here is not in the child, if told so") {
  const auto before = signal(SIGPIPE, SIG_IGN);
  const char* const script = "kill -PIPE $$; echo lives";
  CHECK(run({}, script).out == "lives\n");
  CHECK(run({.default_signals = {SIGPIPE}}, script).code == 128 + SIGPIPE);
  signal(SIGPIPE, before);
}
