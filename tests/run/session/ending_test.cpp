#include "run/session/ending.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace sluice;

TEST_CASE("ending: each kind has its exit code") {
  Ending ending;
  CHECK(ending.well());
  CHECK(ending.code() == 0);
  ending.kind = Ending::Kind::enough;
  CHECK(ending.well());
  CHECK(ending.code() == 0);
  ending.stopped_by(SIGTERM);
  CHECK_FALSE(ending.well());
  CHECK(ending.code() == 143);
  ending.fail({"checkpoint", "last.ckpt", "no room", ""});
  CHECK_FALSE(ending.well());
  CHECK(ending.code() == 1);
  CHECK(Ending::refused({"device", "", "none", ""}).code() == 2);
}

TEST_CASE("ending: the first failure is the one that is told, and a signal does not hide it") {
  Ending ending;
  ending.fail({"read", "a.JPEG", "dead", ""});
  ending.fail({"checkpoint", "last.ckpt", "no room", ""});
  ending.stopped_by(SIGINT);
  CHECK(ending.failure->text() == "read: a.JPEG: dead");
  CHECK(ending.code() == 1);
  Ending refused = Ending::refused({"device", "", "none", ""});
  refused.fail({"log", "", "no room", ""});
  CHECK(refused.code() == 2);
  CHECK(refused.failure->text() == "device: none");
}
