#include "graph/figures/sizing.hpp"

#include <doctest/doctest.h>

#include "tests/support/fake_run.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

SizingOptions bounds() {
  SizingOptions o;
  o.least = {16, 64, 3};
  o.most = {256, 512, 6};
  return o;
}

// Storage and a device as they would answer to sizes, without a clock: each file takes `latency`, all
// together `bandwidth` at most; the device takes `device_rate` images/s.
struct World {
  double latency = 0.1, bandwidth = 1e12, device_rate = 400, file = 110e3;
  double cores = 5000;  // images/s that could be decoded

  [[nodiscard]] Load under(const Sizes& s) const {
    const double at_once = static_cast<double>(std::min<std::size_t>(s.read_threads, s.read_ahead));
    const double storage = std::min(at_once / latency, bandwidth / file);
    const double rate = std::min({storage, device_rate, cores});
    Load l;
    l.device_rate = device_rate;
    l.device_waited = 1 - rate / device_rate;
    l.bytes_per_s = rate * file;
    // Little's law, and if the bandwidth is used up, all who may read wait.
    const double active = rate < storage ? rate * latency : at_once;
    l.read_seconds = active / rate;
    l.reads = l.admitted = active;
    l.readers_busy = active / s.read_threads;
    l.cores_busy = rate / cores;
    l.no_credit = rate < storage || s.read_ahead <= s.read_threads ? 1 : 0;
    l.step_usual = l.step_worst = 0.1;
    return l;
  }
};

// Looks until nothing has changed for a while; the lines that were told.
std::vector<std::string> settle(Sizing& sizing, const World& world, int looks = 30) {
  std::vector<std::string> all;
  for (int i = 0; i < looks; ++i)
    for (std::string& line : sizing.look(world.under(sizing.now()))) all.push_back(std::move(line));
  return all;
}

}  // namespace

TEST_CASE("sizing: reads at once grow with the latency, as far as the device needs and no further") {
  for (const double latency : {0.001, 0.1, 0.25}) {
    CAPTURE(latency);
    World world{.latency = latency};
    Sizing sizing(bounds());
    const std::vector<std::string> told = settle(sizing, world);
    const double needed = 400 * latency;
    CHECK(sizing.now().read_threads >= std::min(needed, 256.0));
    CHECK(sizing.now().read_threads <= std::max(16.0, 2.5 * needed));
    CHECK(sizing.now().read_ahead >= std::min<std::size_t>(2 * sizing.now().read_threads, 512));
    CHECK(told.empty() == (needed <= 16));
    if (needed > 16) {
      CHECK(sizing.more_helps() == true);
      CHECK(has(told[0], "auto: read threads 16 -> 60 (a file takes 100 ms, device waited 60.0 %") ==
            (latency == 0.1));
    }
    CHECK(settle(sizing, world, 15).empty());  // and stay there
  }
}

TEST_CASE("sizing: never past the bounds, and what is fixed stays") {
  Sizing sizing(bounds());
  settle(sizing, {.latency = 10});
  CHECK(sizing.now() == Sizes{256, 512, 3});
  SizingOptions fixed = bounds();
  fixed.most = fixed.least;
  Sizing still(fixed);
  CHECK(settle(still, {.latency = 10}).empty());
  CHECK(still.now() == fixed.least);
}

TEST_CASE("sizing: more reads that bring no more bytes are taken back, once") {
  Sizing sizing(bounds());
  const World world{.latency = 0.01, .bandwidth = 5e6};
  const std::vector<std::string> told = settle(sizing, world, 50);
  CHECK(sizing.now().read_threads == 16);
  CHECK(sizing.more_helps() == false);
  int tried = 0, taken_back = 0;
  for (const std::string& line : told) {
    tried += has(line, "read threads 16 ->");
    taken_back += has(line, "-> 16: more at once brought no more (5.0 MB/s, before 5.0 MB/s)");
  }
  CHECK(tried == 1);
  CHECK(taken_back == 1);
}

TEST_CASE("sizing: storage that changed is tried again after a while") {
  Sizing sizing(bounds());
  settle(sizing, {.latency = 0.01, .bandwidth = 5e6});
  settle(sizing, {.latency = 0.1}, 200);
  CHECK(sizing.now().read_threads >= 40);
  CHECK(sizing.more_helps() == true);
}

TEST_CASE("sizing: slow decoding is no reason to read more") {
  Sizing sizing(bounds());
  CHECK(settle(sizing, {.latency = 0.001, .cores = 100}).empty());
  CHECK(sizing.now() == bounds().least);
}

TEST_CASE("sizing: read-ahead that is full while the device waits grows") {
  Sizing sizing(bounds());
  Load l{.device_waited = 0.3, .read_seconds = 0.1, .readers_busy = 0.2, .no_credit = 0.9};
  CHECK(sizing.look(l).size() == 1);
  CHECK(sizing.now().read_ahead == 128);
  for (int i = 0; i < 10; ++i) (void)sizing.look(l);
  CHECK(sizing.now().read_ahead == 512);
  l.cores_busy = 0.9;
  Sizing other(bounds());
  CHECK(other.look(l).empty());
}

TEST_CASE("sizing: slots for a device that takes batches in bursts") {
  Sizing sizing(bounds());
  Load l{.step_usual = 0.1, .step_worst = 0.4};
  CHECK(has(sizing.look(l).at(0), "auto: batch slots 3 -> 5 (a batch takes 100 ms, at worst 400 ms"));
  l.step_worst = 0.1;
  CHECK(sizing.look(l).empty());
  l.device_waited = 0.2, l.no_slot = 0.9;
  CHECK(sizing.look(l).size() == 1);
  CHECK(sizing.now().slots == 6);
  CHECK(sizing.look(l).empty());  // no more of them
}

TEST_CASE("sizing: down only after a quiet time, step by step, and not to where the device waited") {
  Sizing sizing(bounds());
  settle(sizing, {.latency = 0.4});
  const Sizes large = sizing.now();
  CHECK(large.read_threads > 150);
  const World fast{.latency = 0.002};
  (void)sizing.look({.device_waited = 0.02});
  CHECK(settle(sizing, fast, 19).empty());
  settle(sizing, fast, 500);
  const Sizes small = sizing.now();
  CHECK(small.read_threads < large.read_threads);
  CHECK(small.read_threads > 60);  // at 61 the device still waited
  CHECK(small.read_ahead < large.read_ahead);
  CHECK(settle(sizing, fast, 100).empty());
  // Noise about the threshold does not make it swing: what it raises stays up.
  std::size_t decisions = 0;
  for (int i = 0; i < 400; ++i) {
    Load l = fast.under(sizing.now());
    l.device_waited = i % 40 == 0 ? 0.02 : 0;
    decisions += sizing.look(l).size();
  }
  CHECK(decisions <= 3);
}

TEST_CASE("sizing: looks at a graph as often as told, and not before a few reads have come back") {
  SizingOptions o = bounds();
  o.every = std::chrono::seconds(1);
  Sizing sizing(o);
  PipelineOptions graph;
  graph.read_threads = 16;
  GraphFigures p = planned_figures(graph);
  p.batch = 8;
  const auto at = [&](double seconds, double each) {  // all 16 readers busy, a file takes `each`
    p.elapsed = static_cast<Nanoseconds>(seconds * 1e9);
    for (NodeFigures& n : p.nodes) {
      if (n.id == NodeId::step) n.wait_input = p.elapsed / 2, n.busy = p.elapsed / 2;
      if (n.id != NodeId::read) continue;
      n.busy = n.available = 16 * p.elapsed;
      n.items = static_cast<std::uint64_t>(16 * seconds / each);
    }
    return p;
  };
  CHECK(sizing.look(at(0.9, 0.1)).empty());
  CHECK_FALSE(sizing.look(at(1, 0.1)).empty());
  CHECK(sizing.look(at(1.5, 0.1)).empty());
  Sizing slow(o);
  CHECK(slow.look(at(11, 3)).empty());
  CHECK_FALSE(slow.look(at(13, 3)).empty());
}

TEST_CASE("sizing: a system that gives no more threads is not asked again") {
  Sizing sizing(bounds());
  settle(sizing, {.latency = 0.4});
  sizing.limit_threads(30);
  CHECK(sizing.now().read_threads == 30);
  settle(sizing, {.latency = 0.4});
  CHECK(sizing.now().read_threads == 30);
}

namespace {

// A graph that sizes itself at each tick.
struct SizedRun : FakeRun {
  std::vector<std::string> told;
  GraphFigures last;
  RunEnd run_sized(unsigned most_threads, std::size_t least_ahead) {
    PipelineOptions o = options();
    o.sizing.emplace();
    o.sizing->every = std::chrono::milliseconds(50);
    o.sizing->least = {read_threads, least_ahead, 2};
    o.sizing->most = {most_threads, read_ahead, slots};
    Stages s = stages();
    s.tell = [this](const std::string& line) { told.push_back(line); };
    Ledger ledger(o.split.budget);
    Pipeline pipeline(o, std::move(s), ledger);
    RunEnd end = pipeline.run();
    peak = ledger.peak();
    return end;
  }
};

}  // namespace

TEST_CASE("sizing: a running graph reads more at once when storage is slow, within its budget") {
  const Watchdog dog("sizing");
  SizedRun run;
  run.epochs = 12;
  run.read_threads = 2;
  run.read_ahead = 96;
  run.slots = 5;
  std::atomic<int> active{0}, most{0};
  run.on_read = [&](const Ticket&) {
    const int now = ++active;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    nap(30'000);
    --active;
  };
  run.on_step = [](const Batch&) { nap(2000); };
  const RunEnd end = run.run_sized(48, 8);
  CHECK(end.finished);
  CHECK(run.complete());
  CHECK(run.peak <= run.options().split.budget);
  CHECK(most > 2);
  CHECK(most <= 48);
  CHECK(end.figures.node(NodeId::read).concurrency > 2);
  CHECK(end.figures.node(NodeId::read).available > end.figures.elapsed * 2);
  REQUIRE_FALSE(run.told.empty());
  CHECK(has(run.told[0], "auto: read threads 2 -> "));
}

TEST_CASE("sizing: slots come into use and go out of it while the graph runs, and batches stay the same") {
  const Watchdog dog("slots in use");
  SizedRun run;
  run.epochs = 30;
  run.slots = 6;
  // Long steps now and then: the device takes batches in bursts.
  run.on_step = [](const Batch& b) { nap(b.number % 20 == 0 ? 60'000 : 2000); };
  const RunEnd end = run.run_sized(run.read_threads, run.read_ahead);
  CHECK(end.finished);
  CHECK(run.complete());
  REQUIRE_FALSE(run.told.empty());
  CHECK(has(run.told[0], "auto: batch slots 2 -> "));
}

TEST_CASE("sizing: a stop while threads are being added ends the run") {
  const Watchdog dog("sizing and stop");
  for (int round = 0; round < 3; ++round) {
    SizedRun run;
    run.epochs = 1000;
    run.read_threads = 1;
    run.read_ahead = 64;
    run.on_read = [](const Ticket&) { nap(20'000); };
    PipelineOptions o = run.options();
    o.sizing.emplace();
    o.sizing->every = std::chrono::milliseconds(1);
    o.sizing->least = {1, 8, 2};
    o.sizing->most = {32, 64, 2};
    Ledger ledger(o.split.budget);
    Pipeline pipeline(o, run.stages(), ledger);
    int ticks = 0;
    const RunEnd end = pipeline.run([&] {
      if (pipeline.figures().node(NodeId::read).concurrency > 1 && ++ticks > round) pipeline.stop().request();
    });
    CHECK_FALSE(end.failure);
    CHECK_FALSE(end.abandoned);
    CHECK(end.figures.node(NodeId::read).concurrency > 1);
  }
}
