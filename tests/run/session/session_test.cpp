#include "run/session/session.hpp"
#include "model/task.hpp"

#include <doctest/doctest.h>

#include <csignal>

#include "tests/support/fake_run.hpp"
#include "tests/support/recording_device.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

const auto no_signal = [] { return 0; };

Session::Watch quiet() { return {.signal = no_signal}; }

}  // namespace

TEST_CASE("session: a run that finishes") {
  const Watchdog dog("session");
  FakeRun run;
  Session session(run.options(), run.stages());
  std::atomic<int> ticks = 0;
  run.on_step = [&](const Batch& b) {
    while (b.number == 3 && ticks == 0) nap(1000);
  };
  const Ending ending = session.run({.tick = [&] { ++ticks; }, .signal = no_signal});
  CHECK(ending.kind == Ending::Kind::finished);
  CHECK(ending.code() == 0);
  CHECK_FALSE(ending.failure);
  CHECK_FALSE(ending.abandoned);
  CHECK(run.complete());
  CHECK(ticks > 0);
  CHECK(ending.figures.node(NodeId::step).items == run.batches());
  CHECK(ending.figures.ledger_peak == session.pipeline().ledger().peak());
  CHECK(session.pipeline().ledger().budget() == run.options().split.budget);
}

TEST_CASE("session: a stage that fails is the ending's failure") {
  const Watchdog dog("session, failure");
  FakeRun run;
  run.on_decode = [](const Ticket& t) {
    if (t.index == 21) throw std::runtime_error("no memory");
  };
  Session session(run.options(), run.stages());
  const Ending ending = session.run(quiet());
  CHECK(ending.kind == Ending::Kind::failed);
  REQUIRE(ending.failure);
  CHECK(ending.failure->text() == "decode: file-21: no memory");
  CHECK(ending.code() == 1);
  CHECK_FALSE(ending.abandoned);
  CHECK(run.over == 1);
}

TEST_CASE("session: a signal in the middle ends it, and is its exit code") {
  const Watchdog dog("session, signal");
  FakeRun run;
  run.epochs = 1000;
  std::atomic<bool> begun{false};
  run.on_step = [&](const Batch&) {
    begun = true;
    nap(500);
  };
  Session session(run.options(), run.stages());
  const Ending ending = session.run({.signal = [&] { return begun ? SIGTERM : 0; }});
  CHECK(ending.kind == Ending::Kind::stopped);
  CHECK(ending.signal == SIGTERM);
  CHECK(ending.code() == 143);
  CHECK_FALSE(ending.failure);
  CHECK_FALSE(run.stepped.empty());
  CHECK(run.stepped.size() < run.batches());
}

TEST_CASE("session: who takes signals for himself is told once, and decides") {
  const Watchdog dog("session, signal taken");
  FakeRun run;
  std::atomic<int> ticks{0};
  run.on_step = [&](const Batch& b) {
    while (b.number == 1 && ticks < 3) nap(1000);
  };
  Session session(run.options(), run.stages());
  std::vector<int> told;
  const Ending ending = session.run({.tick = [&] { ++ticks; },
                                     .on_signal = [&](int signal) { told.push_back(signal); },
                                     .signal = [] { return SIGINT; }});
  CHECK(told == std::vector{SIGINT});
  CHECK(ending.kind == Ending::Kind::finished);
  CHECK(ending.code() == 0);
  CHECK(run.complete());
}

TEST_CASE("session: enough is neither a failure nor a stop") {
  const Watchdog dog("session, enough");
  FakeRun run;
  run.epochs = 1000;
  std::optional<Session> session;
  run.on_step = [&](const Batch& b) {
    if (b.number == 7) session->enough();
  };
  session.emplace(run.options(), run.stages());
  const Ending ending = session->run({.on_signal = [](int) {}, .signal = [] { return SIGTERM; }});
  CHECK(ending.kind == Ending::Kind::enough);
  CHECK(ending.code() == 0);
  CHECK(run.stepped.back() == 7);
}

TEST_CASE("session: a log that cannot write ends the run with its reason") {
  const Watchdog dog("session, log");
  FakeRun run;
  run.epochs = 1000;
  std::optional<Session> session;
  run.on_step = [&](const Batch& b) {
    if (b.number == 2) session->log().put({"train", 0, 1, {{"train/loss", 1.0}}, {}});
    nap(500);
  };
  session.emplace(run.options(), run.stages());
  LogOptions options;
  options.metrics = [](std::string_view) -> Status { return Error{"log", "metrics.jsonl", "no room", ""}; };
  (void)session->open_log(std::move(options));
  const Ending ending = session->run(quiet());
  REQUIRE(ending.failure);
  CHECK(ending.failure->text() == "log: metrics.jsonl: no room");
  CHECK(ending.code() == 1);
  CHECK(ending.figures.node(NodeId::log).items == 1);
}

TEST_CASE("session: a device that cannot be had refuses the run, and nothing of it begins") {
  const Watchdog dog("session, no device");
  const auto device = std::make_shared<RecordingDevice>();
  int pins = 0;
  device->on_pin = [&]() -> Status {
    return ++pins < 2 ? Status(Done{}) : Error{"device", "", "no more memory may be locked", ""};
  };
  const auto open = [&](bool there) -> DeviceFeed::Open {
    return [&device, there]() -> Result<std::shared_ptr<Device>> {
      if (there) return std::shared_ptr<Device>(device);
      return Error{"device", "cuda", "there is none", ""};
    };
  };
  for (const bool there : {false, true})
    for (const bool asked : {false, true}) {
      pins = 0;
      FakeRun run;
      bool drawn = false;
      run.on_next = [&](const Ticket&) { drawn = true; };
      {
        Session session(run.options(), run.stages(),
                        std::make_unique<DeviceFeed>(open(there), 8, image_layout(32)));
        if (asked) CHECK_FALSE(session.prepare());
        const Ending ending = session.run(quiet());
        CHECK(ending.kind == Ending::Kind::refused);
        REQUIRE(ending.failure);
        CHECK(ending.failure->text() ==
              (there ? "device: no more memory may be locked" : "device: cuda: there is none"));
        CHECK(ending.code() == 2);
      }
      CHECK_FALSE(drawn);
      CHECK(run.over == 0);
      CHECK(pins == (there ? 2 : 0));
      CHECK(device->pinned == 0);  // the one that was locked is not any more
    }
}
