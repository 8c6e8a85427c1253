#include "run/launch/launch.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <sstream>
#include <thread>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

struct Ended {
  int code = 0;
  std::string out, err;
};

// Ranks that are a shell script each.
Ended launched(int devices, const std::string& script, std::chrono::milliseconds grace = 20s) {
  const TemporaryFolder folder;
  LaunchOptions o;
  o.hosts.devices = devices;
  o.program = "/bin/sh";
  o.words = {"sh", "-c", script};
  o.grace = grace;
  o.out = open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  o.err = open((folder / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  Ended ended;
  ended.code = launch(o);
  close(o.out);
  close(o.err);
  ended.out = read_text(folder / "out");
  ended.err = read_text(folder / "err");
  return ended;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("launch: every rank knows its place, and its lines carry its number") {
  const Ended ended = launched(3,
                               "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR; "
                               "printf 'no end' >&2; test $MASTER_PORT -gt 0");
  CHECK(ended.code == 0);
  for (const std::string r : {"0", "1", "2"}) {
    CHECK(has(ended.out, "[" + r + "] " + r + "/3 " + r + "/3 127.0.0.1\n"));
    CHECK(has(ended.err, "[" + r + "] no end\n"));
  }
  CHECK(ended.out.size() == 3 * std::string("[0] 0/3 0/3 127.0.0.1\n").size());
}

TEST_CASE("launch: ranks of one host share a secret of their own, and rank 0 gets the socket that listens") {
  const std::string script =
      "echo secret $SLUICE_SECRET; echo fd ${SLUICE_LISTEN_FD:-none}; echo words $0 $*; "
      "if [ $RANK = 0 ]; then readlink /proc/$$/fd/$SLUICE_LISTEN_FD; fi";
  const auto secret_of = [](const Ended& ended, const std::string& rank) {
    const std::string before = "[" + rank + "] secret ";
    const std::size_t at = ended.out.find(before);
    REQUIRE(at != std::string::npos);
    return ended.out.substr(at + before.size(), ended.out.find('\n', at) - at - before.size());
  };
  const Ended one = launched(2, script), two = launched(2, script);
  CHECK(one.code == 0);
  const std::string secret = secret_of(one, "0");
  CHECK(secret.size() == 32);
  CHECK(secret_of(one, "1") == secret);
  CHECK(secret_of(two, "0") != secret);
  CHECK(has(one.out, "[0] socket:["));
  CHECK_FALSE(has(one.out, "[0] fd none"));
  CHECK(has(one.out, "[1] fd none\n"));
}

TEST_CASE("launch: lines stay whole, however many there are at once") {
  const Ended ended =
      launched(2, "i=0; while [ $i -lt 3000 ]; do echo 'a line of this rank'; i=$((i+1)); done");
  CHECK(ended.code == 0);
  std::istringstream in(ended.out);
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines)
    REQUIRE((line == "[0] a line of this rank" || line == "[1] a line of this rank"));
  CHECK(lines == 6000);
}

TEST_CASE("launch: when one fails, the others are told to end, and its exit code is the one that counts") {
  const Ended ended = launched(3,
                               "if [ $RANK = 1 ]; then sleep 0.3; exit 7; fi; trap 'echo saved; exit 3' "
                               "TERM; while :; do sleep 0.02; done");
  CHECK(ended.code == 7);
  CHECK(has(ended.out, "[0] saved\n"));
  CHECK(has(ended.out, "[2] saved\n"));
  CHECK(has(ended.err, "sluice: launch: rank 1 ended with exit code 7; ending the others\n"));
  CHECK_FALSE(has(ended.err, "rank 0"));
}

TEST_CASE("launch: who does not listen is killed after a while, who is frozen at once") {
  const auto began = std::chrono::steady_clock::now();
  const Ended deaf =
      launched(2, "trap '' TERM; if [ $RANK = 0 ]; then kill -9 $$; fi; while :; do sleep 0.02; done", 200ms);
  CHECK(deaf.code == 128 + SIGKILL);
  CHECK(has(deaf.err, "rank 0 was killed by SIGKILL"));
  const Ended frozen = launched(2, "if [ $RANK = 1 ]; then kill -STOP $$; fi; sleep 0.1; exit 1");
  CHECK(frozen.code == 1);
  CHECK(std::chrono::steady_clock::now() - began < 15s);
}

TEST_CASE("launch: signals are passed on, once") {
  std::thread sender([launcher = getpid()] {
    std::this_thread::sleep_for(300ms);
    kill(launcher, SIGTERM);
  });
  const Ended ended =
      launched(2,
               "n=0; trap 'n=$((n+1)); [ $RANK = 1 ] && exit 143' TERM; i=0; "
               "while [ $i -lt 40 ]; do sleep 0.02; i=$((i+1)); done; echo told $n; exit 143");
  sender.join();
  CHECK(ended.code == 128 + SIGTERM);
  CHECK(has(ended.out, "[0] told 1\n"));
  CHECK(ended.err.empty());
}

TEST_CASE("launch: a program that is not there is an error") {
  LaunchOptions o;
  o.hosts.devices = 2;
  o.program = "/nowhere/sluice";
  o.words = {"sluice"};
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  o.err = pipe_ends[1];
  CHECK(launch(o) == 1);
  char text[300] = {};
  CHECK(read(pipe_ends[0], text, sizeof text - 1) > 0);
  CHECK(has(text, "launch: rank 0: cannot be started"));
  for (const int fd : pipe_ends) close(fd);
}
