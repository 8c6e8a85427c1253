#include "graph/flow/requests.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/support/answering.hpp"
#include "tests/support/fake_run.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;
using Kind = Outcome::Kind;

namespace {

struct WideRun : FakeRun {
  WideRun() {
    epochs = 4;
    batch = 32;
    read_threads = 300;
    read_ahead = 400;
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("requests: hundreds in flight, answered by one thread in random order, give the same batches") {
  const Watchdog dog("hundreds");
  WideRun blocking;
  blocking.read_threads = 4;
  REQUIRE(blocking.run().finished);
  WideRun run;
  Answering source(300);
  run.change = [&](Stages& s) { source.wire(s); };
  const RunEnd end = run.run();
  CHECK_FALSE(end.failure);
  CHECK_FALSE(end.abandoned);
  CHECK(run.complete());
  CHECK(run.contents == blocking.contents);
  CHECK(source.most() == 300);  // no more than allowed, with credit for 400
  CHECK(run.peak <= run.options().split.budget);
  for (const NodeFigures& node : end.figures.nodes)
    if (node.id == NodeId::read) CHECK(node.items == 4 * (8 * 32 + 3));
  CHECK(end.figures.storage.files == 4 * (8 * 32 + 3));
}

TEST_CASE("requests: answers from within begin() go no deeper however many they are") {
  const Watchdog dog("at once");
  for (const unsigned every : {1u, 3u}) {
    CAPTURE(every);
    WideRun run;
    Answering source;
    static thread_local int depth = 0;
    std::atomic<int> deepest{0};
    source.at_once = [every](const Ticket& t) { return t.index % every == 0; };
    run.change = [&](Stages& s) {
      source.wire(s);
      s.begin_read = [&, inner = s.begin_read](const Ticket& t, Request&& request, const Stop& stop) {
        deepest = std::max(deepest.load(), ++depth);
        inner(t, std::move(request), stop);
        --depth;
      };
    };
    CHECK(run.run().finished);
    CHECK(run.complete());
    CHECK(deepest == 1);
  }
}

TEST_CASE("requests: bad and large items go through the lane, with the least read-ahead too") {
  const Watchdog dog("lane");
  for (const std::size_t read_ahead : {1u, 5u, 100u}) {
    for (const Kind kind : {Kind::bad, Kind::big}) {
      CAPTURE(read_ahead);
      FakeRun run;
      run.read_ahead = read_ahead;
      run.read_kind = [kind](const Ticket& t) { return t.index % 3 == 0 ? kind : Kind::done; };
      Answering source;
      source.at_once = [](const Ticket& t) { return t.index % 5 == 0; };
      run.change = [&](Stages& s) { source.wire(s); };
      CHECK(run.run().finished);
      CHECK(run.complete());
      CHECK_FALSE(run.lane_seen.empty());
      CHECK(run.peak <= run.options().split.budget);
    }
  }
  FakeRun large;
  large.file_bytes = 40'000;  // more than the grant: take() gives nothing
  Answering source;
  large.change = [&](Stages& s) { source.wire(s); };
  CHECK(large.run().finished);
  CHECK(large.complete());
}

TEST_CASE("requests: each split in its own style within one run") {
  const Watchdog dog("both styles");
  for (const Split completing : {Split::train, Split::val}) {
    FakeRun run;
    run.epochs = 5;
    Answering source;
    std::atomic<int> wrong{0};
    run.change = [&](Stages& s) {
      source.wire(s);
      s.completes = [=](const Ticket& t) { return t.split == completing; };
      s.read = [&](const Ticket& t, const TakeChunks& take, const Stop& stop) {
        wrong += t.split == completing;
        return source.read(t, take, stop);
      };
    };
    CHECK(run.run().finished);
    CHECK(run.complete());
    CHECK(wrong == 0);
    CHECK(source.most() > 0);
  }
}

TEST_CASE("requests: whatever goes wrong ends the run and is named") {
  const Watchdog dog("failures");
  const auto failure_of = [](const std::function<void(const Ticket&, Request&&)>& at_20) {
    FakeRun run;
    Answering source;
    run.change = [&](Stages& s) {
      source.wire(s);
      s.begin_read = [&, inner = s.begin_read](const Ticket& t, Request&& request, const Stop& stop) {
        t.index == 20 ? at_20(t, std::move(request)) : inner(t, std::move(request), stop);
      };
    };
    const RunEnd end = run.run();
    CHECK_FALSE(end.finished);
    CHECK_FALSE(end.abandoned);
    REQUIRE(end.failure);
    CHECK(end.failure->stage == "read");
    CHECK(end.failure->subject == "file-20");
    return end.failure->cause;
  };
  CHECK(failure_of([](const Ticket&, Request&& r) {
          r.done(Outcome::fatal({"", "", "no such key", ""}));
        }) == "no such key");
  CHECK(has(failure_of([](const Ticket&, Request&&) { throw std::runtime_error("no connection"); }),
            "no connection"));
  CHECK(has(failure_of([](const Ticket&, Request&&) {}), "without an answer"));
  CHECK(has(failure_of([](const Ticket&, Request&& r) { const Request dropped = std::move(r); }),
            "without an answer"));
  CHECK(has(failure_of([](const Ticket&, Request&& r) {
              const Request dropped = std::move(r);
              throw std::runtime_error("too late to tell");
            }),
            "without an answer"));
}

TEST_CASE("requests: a stop with hundreds under way; the source is asked, and answers") {
  const Watchdog dog("stop");
  WideRun run;
  Answering source(1000);  // more than can be begun: answers nothing of its own accord
  run.change = [&](Stages& s) {
    source.wire(s);
    s.drop_reads = [&] { source.answer_all(); };
  };
  const RunEnd end = run.run([&](Pipeline& p) {
    if (source.most() == 300) p.stop().request();
  });
  CHECK_FALSE(end.failure);
  CHECK_FALSE(end.finished);
  CHECK_FALSE(end.abandoned);
  CHECK(run.stepped.empty());
}

TEST_CASE("requests: one that is just being begun when the run is cancelled is dropped as well") {
  const Watchdog dog("begun late");
  FakeRun run;
  std::mutex mutex;
  std::vector<Request> held;
  std::atomic<int> drops = 0;
  std::atomic<bool> inside = false;
  run.change = [&](Stages& s) {
    s.read = nullptr;
    s.begin_read = [&](const Ticket&, Request&& request, const Stop&) {
      inside = true;
      while (drops == 0) std::this_thread::yield();  // until cancel() has had all others dropped
      const std::lock_guard lock(mutex);
      held.push_back(std::move(request));
    };
    s.drop_reads = [&] {
      ++drops;
      std::vector<Request> all;
      {
        const std::lock_guard lock(mutex);
        all = std::exchange(held, {});
      }
      for (Request& one : all) one.done(Outcome::big());
    };
  };
  Pipeline pipeline(run.options(), run.stages());
  const RunEnd end = pipeline.run([&] {
    if (inside) pipeline.stop().request();
  });
  CHECK_FALSE(end.failure);
  CHECK_FALSE(end.abandoned);
  CHECK(drops >= 2);
}

TEST_CASE("requests: answers that come after the pipeline is gone, or never, are dropped") {
  const Watchdog dog("late");
  // Outlive the run, as a request does that nobody answers; LeakSanitizer knows them as reachable.
  static auto* const run = new WideRun;
  struct Late {
    Request request;
    std::span<std::uint8_t* const> chunks;
  };
  static auto* const late = new std::vector<std::unique_ptr<Late>>;
  static std::atomic<std::size_t> begun{0};
  run->change = [](Stages& s) {
    s.read = nullptr;
    s.begin_read = [](const Ticket& t, Request&& request, const Stop&) {
      auto one = std::make_unique<Late>(Late{std::move(request), {}});
      if (t.index % 2 == 0) one->chunks = one->request.take(20'000);
      late->push_back(std::move(one));
      ++begun;
    };
  };
  const PipelineOptions o = run->options();
  {
    Pipeline pipeline(o, run->stages());
    const RunEnd end = pipeline.run([&] {
      if (begun == 300) pipeline.stop().request();
    });
    CHECK(end.abandoned);
    CHECK_FALSE(end.failure);
    CHECK(pipeline.ledger().peak() <= o.split.budget);
  }
  REQUIRE(late->size() == 300);
  for (std::size_t i = 0; i < 200; ++i) {  // the rest never comes back
    Late& one = *(*late)[i];
    if (one.chunks.empty()) CHECK(one.request.take(20'000).empty());
    for (std::uint8_t* chunk : one.chunks) std::memset(chunk, 1, 1000);
    if (i % 3 == 0)
      one.request.done({});
    else
      one.request.done(Outcome::fatal({"read", "", "late", ""}));
  }
  CHECK(run->stepped.empty());
}
