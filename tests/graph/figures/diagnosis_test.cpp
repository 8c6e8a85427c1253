#include "graph/figures/diagnosis.hpp"

#include <doctest/doctest.h>

#include <map>
#include <mutex>

#include "tests/support/fake_run.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t MiB = 1024 * 1024;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// 100 s of a run: shares of each node's time at work, and of the time the bounds held it up.
struct Injected {
  double step = 0.3, read = 0.01, decode = 0.01, augment = 0.01, lane = 0, upload = 0.01;
  double no_credit = 0, no_slot = 0, log = 0;
  unsigned read_threads = 16, decode_threads = 8;
  std::size_t read_ahead = 512, unused = 500 * MiB;
  double read_ms = 84, file = 110e3;
  bool sizes_threads = false, shared_bandwidth = false;

  [[nodiscard]] GraphFigures figures() const {
    PipelineOptions o;
    o.decode_threads = decode_threads;
    o.read_threads = read_threads;
    o.batch = 256;
    o.split.slots = 3;
    o.split.slot_bytes = 38'535'168;
    o.split.read_ahead = read_ahead;
    o.split.grant_chunks = 16;
    o.split.chunks = read_ahead * 16;
    GraphFigures p = planned_figures(o);
    p.elapsed = 100'000'000'000;
    p.budget = 1024 * MiB;
    p.unused = unused;
    p.slots = o.split.slots;
    p.slot_bytes = o.split.slot_bytes;
    p.read_ahead_bytes = o.split.chunks * ChunkPool::chunk_bytes;
    p.sizes_threads = sizes_threads;
    p.batch = o.batch;
    const std::map<NodeId, double> busy = {{NodeId::step, step},     {NodeId::read, read},
                                           {NodeId::decode, decode}, {NodeId::augment, augment},
                                           {NodeId::lane, lane},     {NodeId::upload, upload}};
    for (NodeFigures& n : p.nodes) {
      n.available = p.elapsed * n.concurrency;
      n.busy = static_cast<Nanoseconds>((busy.contains(n.id) ? busy.at(n.id) : 0.01) *
                                        static_cast<double>(n.available));
      const double each = n.id == NodeId::read ? read_ms * 1e6 : 5e6;
      n.items = static_cast<std::uint64_t>(static_cast<double>(n.busy) / each);
      n.p50 = static_cast<Nanoseconds>(each);
      n.wait_input = n.available - n.busy;
      const double held = n.id == NodeId::sampler ? no_credit
                          : n.id == NodeId::gate  ? no_slot
                          : n.id == NodeId::log   ? log
                                                  : 0;
      n.wait_bound = static_cast<Nanoseconds>(held * static_cast<double>(p.elapsed));
    }
    for (EdgeFigures& e : p.edges) e.mean = e.used = e.limit * std::max(no_credit, 0.01);
    const NodeFigures& r = p.node(NodeId::read);
    p.node(NodeId::step).items = r.items / p.batch;  // each image that was read was taken
    p.storage.files = static_cast<double>(r.items);
    p.storage.bytes = p.storage.files * file;
    p.storage.seconds = static_cast<double>(r.busy) * 1e-9;
    p.storage.bytes_squared = p.storage.files * file * file;
    p.storage.bytes_seconds = file * p.storage.seconds;
    if (shared_bandwidth) p.storage.more_helps = false;
    return p;
  }
};

Diagnosis judge(const Injected& figures) { return diagnose(figures.figures()); }

}  // namespace

TEST_CASE("diagnosis: slow storage, with as many reads at once as there are threads") {
  const Diagnosis d = judge({.step = 0.39, .read = 1.0, .read_threads = 64});
  CHECK(d.bound_by == "read");
  CHECK(d.line ==
        "bound by read (storage 84 ms a file, 64 in flight, device waited 61 % of the time): raise "
        "pipeline.read_threads to 256 or copy the data to local disk");
}

TEST_CASE("diagnosis: slow storage, with as many reads at once as read-ahead allows") {
  // The threads size themselves: read-ahead is what is left to raise.
  Injected i{.step = 0.2, .read = 0.5, .no_credit = 0.98, .read_threads = 128, .read_ahead = 64};
  i.sizes_threads = true;
  const Diagnosis d = judge(i);
  CHECK(d.bound_by == "read");
  CHECK(d.line ==
        "bound by read (storage 84 ms a file, 64 in flight, device waited 80 % of the time): raise "
        "pipeline.read_ahead to 512 (needs 53.7 MiB of budget) or copy the data to local disk");
}

TEST_CASE("diagnosis: slow storage, with threads and read-ahead both too few") {
  const Diagnosis d =
      judge({.step = 0.2, .read = 0.99, .no_credit = 0.5, .read_threads = 64, .read_ahead = 128});
  CHECK(d.bound_by == "read");
  CHECK(has(d.line,
            "raise pipeline.read_threads to 512 and pipeline.read_ahead to 512 (needs 53.7 MiB of "
            "budget) or copy"));
}

TEST_CASE("diagnosis: storage whose bandwidth is used up is not told to read more at once") {
  const Diagnosis d = judge({.step = 0.2, .read = 1.0, .read_threads = 64, .shared_bandwidth = true});
  CHECK(d.bound_by == "read");
  CHECK(has(d.line, "bound by read (storage gives 83.8 MB/s, 64 in flight share it, device waited 80 %"));
  CHECK(has(d.line, "more reads at once would not help"));
  CHECK_FALSE(has(d.line, "raise"));
}

TEST_CASE("diagnosis: a budget that cannot hold the reads that storage would need") {
  Injected i{.step = 0.2, .read = 0.5, .no_credit = 0.98, .read_threads = 16, .read_ahead = 8};
  i.unused = 1 * MiB;
  const Diagnosis d = judge(i);
  CHECK(d.bound_by == "budget");
  CHECK(has(d.line,
            "bound by budget (read-ahead holds 2.0 MiB and was full 98 % of the time, storage 84 ms a "
            "file, 8 in flight, device waited 80 % of the time): raise budget.ram by 13.0 MiB for 64 "
            "reads at once"));
}

TEST_CASE("diagnosis: nobody is told to raise something to what it is, or to less") {
  // Read-ahead is full, mostly of files that are being read, and there is budget left.
  Injected ahead{.step = 0.9, .read = 0.6, .no_credit = 0.98, .read_threads = 512, .read_ahead = 512};
  CHECK(has(judge(ahead).line, "raise pipeline.read_ahead to 1024 (needs 107.4 MiB of budget)"));
  // Three quarters of the threads' time is spent reading, and the device is nearly fed.
  const Injected threads{.step = 0.94, .read = 0.75, .read_threads = 64};
  CHECK(has(judge(threads).line, "raise pipeline.read_threads to 128"));
}

TEST_CASE("diagnosis: too few batch slots for what the device takes in bursts") {
  Injected i{.step = 0.6, .decode = 0.4, .no_credit = 0.9, .no_slot = 0.8};
  CHECK(judge(i).line ==
        "bound by budget (all 3 batch slots in use 80 % of the time, device waited 40 % of the time): raise "
        "pipeline.prefetch to 4 (needs 36.8 MiB of budget)");
  i.unused = 0;
  CHECK(has(judge(i).line, "raise budget.ram by 36.8 MiB for each batch more, or lower train.batch"));
}

TEST_CASE("diagnosis: slow decode, slow augment, and both together") {
  // Read-ahead is full and samples wait for their turn, as they do before any slow stage.
  Diagnosis d = judge({.decode = 0.97, .no_credit = 0.95});
  CHECK(d.bound_by == "decode");
  CHECK(has(d.line,
            "bound by decode (5 ms an image, 8 at a time, device waited 70 % of the time): raise "
            "pipeline.decode_threads above 8 if there are idle cores"));
  d = judge({.augment = 0.97, .no_credit = 0.95});
  CHECK(d.bound_by == "augment");
  CHECK(has(d.line, "augment.policy"));
  CHECK(judge({.decode = 0.55, .augment = 0.4, .no_credit = 0.95}).bound_by ==
        "decode");  // they share threads
}

TEST_CASE("diagnosis: cores that are all at work make others slow, and are what is named") {
  CHECK(judge({.decode = 0.95, .lane = 1.0}).bound_by == "decode");
  CHECK(judge({.read = 0.98, .decode = 0.6, .augment = 0.3}).bound_by == "decode");
  CHECK(judge({.read = 0.98, .decode = 0.5}).bound_by == "read");
  CHECK(judge({.decode = 0.3, .lane = 0.9}).bound_by == "big lane");
}

TEST_CASE("diagnosis: reads that do not come back at all") {
  GraphFigures p = Injected{.step = 0, .read = 0}.figures();
  for (NodeFigures& n : p.nodes)
    if (n.id == NodeId::read) n.items = 0, n.active = 16;
  CHECK(
      diagnose(p).line ==
      "bound by read (no file came back in 100 s, 16 in flight, device waited 100 % of the time): check the "
      "mount or the disk");
}

TEST_CASE("diagnosis: slow device, nothing slow, slow log, lane and upload") {
  CHECK(judge({.step = 0.99, .no_credit = 0.99, .no_slot = 0.99}).bound_by == "step");
  CHECK(judge({.step = 0.96}).line ==
        "bound by step (device busy 96 % of the time, 5.0 ms a batch): the data path keeps up; only a faster "
        "device or a smaller model helps");
  CHECK(judge({.step = 0.98, .log = 0.5}).bound_by == "log");
  CHECK(judge({.step = 0.5, .read = 1.0, .log = 0.1}).bound_by == "read");
  CHECK(judge({.lane = 0.9}).bound_by == "big lane");
  CHECK(judge({.upload = 0.95}).bound_by == "upload");
  CHECK(has(judge({}).line, "bound by nothing in particular (device waited 70 % of the time; read busy 1 %"));
}

TEST_CASE("diagnosis: before anything has run") {
  CHECK(diagnose({}).bound_by == "start-up");
  CHECK(diagnose(planned_figures({})).bound_by == "start-up");
}

TEST_CASE("diagnosis: figures of an interval, not since the start") {
  // First 100 s bound by decode, then 100 s bound by read.
  const GraphFigures first = Injected{.decode = 0.97, .no_credit = 0.95}.figures();
  const GraphFigures more = Injected{.read = 1.0}.figures();
  GraphFigures both = first;
  both.elapsed += more.elapsed;
  for (NodeFigures& n : both.nodes) {
    const NodeFigures& m = more.node(n.id);
    n.items += m.items, n.available += m.available, n.busy += m.busy;
    n.wait_input += m.wait_input, n.wait_bound += m.wait_bound;
  }
  const GraphFigures interval = between(first, both);
  CHECK(interval.elapsed == more.elapsed);
  CHECK(diagnose(first).bound_by == "decode");
  CHECK(diagnose(interval).bound_by == "read");
  for (const NodeFigures& n : interval.nodes) {
    CAPTURE(name_of(n.id));
    CHECK(n.items == more.node(n.id).items);
    CHECK(n.busy == more.node(n.id).busy);
  }
}

TEST_CASE("diagnosis: part by part, with questions in between") {
  GraphFigures now = Injected{.decode = 0.97, .no_credit = 0.95}.figures();
  PartDiagnosis parts([&] { return now; });
  CHECK(parts.so_far().bound_by == "decode");
  CHECK(parts.part_over().bound_by == "decode");
  CHECK(parts.so_far().bound_by == "start-up");  // nothing has happened since
  const GraphFigures more = Injected{.step = 0.99}.figures();
  now.elapsed *= 2;
  for (NodeFigures& n : now.nodes) {
    const NodeFigures& m = more.node(n.id);
    n.items += m.items, n.available += m.available, n.busy += m.busy, n.wait_input += m.wait_input;
  }
  CHECK(parts.so_far().bound_by == "step");
  CHECK(parts.so_far().bound_by == "step");  // asking changes nothing
  CHECK(parts.part_over().bound_by == "step");
}

TEST_CASE("diagnosis: between() takes percentiles and means of the interval") {
  Registry registry;
  NodeStats& node = registry.node(NodeId::decode);
  double fill = 10;
  constexpr std::size_t edge = edge_between(NodeId::gate, NodeId::decode);
  registry.bound(edge, "", 100, [&] { return fill; });
  node.arrive();
  node.end(node.begin() - 1'000'000'000);
  registry.observe();
  const GraphFigures before = registry.figures(1000);
  fill = 90;
  for (int i = 0; i < 3; ++i) registry.observe();
  node.arrive();
  node.end(node.begin() - 1'000'000);
  const GraphFigures interval = between(before, registry.figures(3000));
  CHECK(interval.elapsed == 2000);
  CHECK(interval.node(NodeId::decode).items == 1);
  CHECK(interval.node(NodeId::decode).p99 == doctest::Approx(1e6).epsilon(0.3));
  CHECK(interval.edges[edge].mean == doctest::Approx(90));
}

// The same cases through the real graph, with fake stages; what is slow is slow by a factor of ten or more.
TEST_CASE("diagnosis: a running graph names the stage that was made slow") {
  const Watchdog dog("diagnosis");
  FakeRun run;
  run.epochs = 1;
  run.read_ahead = 64;
  run.on_step = [](const Batch&) { nap(1000); };
  SUBCASE("latency") {
    run.on_read = [](const Ticket&) { nap(100'000); };
    const Diagnosis d = diagnose(run.run().figures);
    CHECK(d.bound_by == "read");
    CHECK(has(d.line, "raise pipeline.read_threads to"));
  }
  SUBCASE("bandwidth") {
    run.read_threads = 16;
    std::mutex mutex;
    auto free = std::chrono::steady_clock::now();
    run.on_read = [&](const Ticket&) {
      std::chrono::steady_clock::time_point mine;
      {
        const std::lock_guard lock(mutex);
        free = mine = std::max(free, std::chrono::steady_clock::now()) + std::chrono::milliseconds(15);
      }
      std::this_thread::sleep_until(mine);
    };
    const Diagnosis d = diagnose(run.run().figures);
    CHECK(d.bound_by == "read");
    CHECK(has(d.line, "more reads at once would not help"));
  }
  SUBCASE("decode") {
    run.on_decode = [](const Ticket&) { nap(40'000); };
    CHECK(diagnose(run.run().figures).bound_by == "decode");
  }
  SUBCASE("augment") {
    run.on_augment = [](const Ticket&) { nap(40'000); };
    CHECK(diagnose(run.run().figures).bound_by == "augment");
  }
  SUBCASE("step") {
    run.on_step = [](const Batch&) { nap(100'000); };
    CHECK(diagnose(run.run().figures).bound_by == "step");
  }
  SUBCASE("budget") {
    run.read_threads = 16;
    run.read_ahead = 3;
    run.on_read = [](const Ticket&) { nap(100'000); };
    const Diagnosis d = diagnose(run.run().figures);
    CHECK(d.bound_by == "budget");
    CHECK(has(d.line, "raise budget.ram by"));
  }
  SUBCASE("log") {
    Pipeline* running = nullptr;
    run.on_step = [&](const Batch&) {
      nap(50'000);
      running->log_stats().waited_for_bound(45'000'000);
    };
    const PipelineOptions o = run.options();
    Pipeline pipeline(o, run.stages());
    running = &pipeline;
    CHECK(diagnose(pipeline.run().figures).bound_by == "log");
  }
  CHECK(run.complete());
}

TEST_CASE("diagnosis: a graph whose trouble changes in mid-run is judged by the interval") {
  const Watchdog dog("diagnosis of intervals");
  FakeRun run;
  run.epochs = 2;
  run.read_ahead = 16;
  std::optional<GraphFigures> first;
  std::optional<Pipeline> pipeline;
  run.on_decode = [](const Ticket& t) { nap(t.epoch == 0 ? 20'000 : 0); };
  run.on_step = [&](const Batch& b) {
    if (b.number == run.per_epoch() + 1) first = pipeline->figures();  // when what was slow is through
    nap(b.number < run.per_epoch() ? 100 : 150'000);
  };
  const PipelineOptions o = run.options();
  pipeline.emplace(o, run.stages());
  const RunEnd end = pipeline->run();
  REQUIRE(first);
  CHECK(diagnose(*first).bound_by == "decode");
  CHECK(diagnose(between(*first, end.figures)).bound_by == "step");
}
