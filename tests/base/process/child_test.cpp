#include "base/process/child.hpp"

#include <doctest/doctest.h>

using namespace sluice;
using namespace std::chrono_literals;

namespace {

ChildOptions shell(const std::string& script) {
  ChildOptions o;
  o.program = "/bin/sh";
  o.words = {"sh", "-c", script};
  return o;
}

}  // namespace

TEST_CASE("child: what it prints, its exit code and its memory") {
  const ChildEnd end = run_child(shell("echo out; echo err >&2; exit 7"));
  CHECK(end.code == 7);
  CHECK(end.out == "out\n");
  CHECK(end.err == "err\n");
  CHECK(end.peak_rss > 0);
  CHECK_FALSE(end.too_long);
}

TEST_CASE("child: more output than a pipe holds does not block it") {
  const ChildEnd end = run_child(shell("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"));
  CHECK(end.code == 0);
  CHECK(end.out.size() == 300000);
  CHECK(end.err.size() == 300000);
}

TEST_CASE("child: killed when its time is over, or when it is told to stop") {
  ChildOptions slow = shell("exec sleep 600");
  slow.limit = 50ms;
  const ChildEnd late = run_child(slow);
  CHECK(late.too_long);
  CHECK(late.code == 128 + 9);
  slow.limit = 1h;
  slow.stop = [] { return true; };
  const ChildEnd stopped = run_child(slow);
  CHECK(stopped.stopped);
  CHECK_FALSE(stopped.too_long);
  CHECK(stopped.code == 128 + 9);
}

TEST_CASE("child: a program that is not there") {
  ChildOptions none;
  none.program = "/nowhere";
  none.words = {"nowhere"};
  const ChildEnd end = run_child(none);
  CHECK(end.code == -1);
  CHECK(end.err == "No such file or directory");
}
