#include "graph/figures/load.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/random.hpp"
#include "graph/figures/diagnosis.hpp"
#include "graph/figures/layout.hpp"
#include "graph/figures/sizing.hpp"
#include "graph/memory/chunks.hpp"

using namespace sluice;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The number that stands behind these words; 0 if they are not there.
double told(const std::string& line, const std::string& words) {
  const std::size_t at = line.find(words + " ");
  return at == std::string::npos ? 0 : std::strtod(line.c_str() + at + words.size(), nullptr);
}

// A run at one moment: sizes, how far it may go by itself, and what it was like, whether or not that fits
// together.
struct Moment {
  Sizes now, most;
  GraphFigures figures;
};

class Generator {
 public:
  explicit Generator(std::uint64_t number) : random_(14, 0, number, Purpose::synth) {}

  Moment moment() {
    Moment m;
    m.now = {whole(1, 300), whole(1, 1200), whole(1, 8)};
    m.most = m.now;
    const bool sized = chance();
    if (sized && chance()) m.most.read_threads += whole(1, 256);
    if (sized && chance()) m.most.read_ahead += whole(1, 1000);
    if (sized && chance()) m.most.slots += whole(1, 4);
    PipelineOptions o;
    o.read_threads = m.now.read_threads;
    o.decode_threads = whole(1, 16);
    o.batch = whole(1, 512);
    o.split.slots = m.now.slots;
    o.split.slot_bytes = 1'000'000;
    o.split.read_ahead = m.now.read_ahead;
    o.split.chunks = std::max<std::size_t>(m.now.read_ahead * whole(1, 16), 1);
    GraphFigures& p = m.figures = planned_figures(o);
    p.elapsed = static_cast<Nanoseconds>(1e9 * (0.5 + 100 * share()));
    p.budget = std::size_t{1} << 30;
    p.unused = chance() ? 0 : whole(0, 600'000'000);
    p.slots = m.now.slots;
    p.slot_bytes = o.split.slot_bytes;
    p.read_ahead_bytes = o.split.chunks * ChunkPool::chunk_bytes;
    p.batch = o.batch;
    p.sizes_threads = sized && (m.most.read_threads > m.now.read_threads || chance());
    if (sized) p.most = m.most;
    fill(p);
    return m;
  }

 private:
  bool chance() { return random_.below(2) == 1; }
  unsigned whole(std::uint32_t least, std::uint32_t most) { return least + random_.below(most - least + 1); }
  // Often near one of the limits, where verdicts change.
  double share() {
    const double limits[] = {0, 0.01, 0.05, 0.25, 0.5, 0.7, 0.9, 1};
    const double any = random_.below(1'000'001) / 1e6;
    return chance() ? any : std::clamp(limits[random_.below(8)] + 0.02 * (any - 0.5), 0.0, 1.0);
  }

  void fill(GraphFigures& p) {
    for (NodeFigures& n : p.nodes) {
      n.available = p.elapsed * n.concurrency;
      n.busy = static_cast<Nanoseconds>(share() * static_cast<double>(n.available));
      n.wait_input = n.available - n.busy;
      n.wait_bound = static_cast<Nanoseconds>(share() * static_cast<double>(p.elapsed));
      n.items = chance() ? whole(0, 20) : whole(0, 1'000'000);
      n.p50 = whole(1, 1'000'000'000);
      n.p99 = n.p50 + whole(0, 1'000'000'000);
    }
    if (chance()) p.node(NodeId::log).wait_bound = 0;
    EdgeFigures& admitted = p.edges[edge_between(NodeId::sampler, NodeId::read)];
    admitted.mean = share() * admitted.limit;
    StorageFigures& s = p.storage;
    s.files = static_cast<double>(p.node(NodeId::read).items);
    const double each = 1000 + 400e3 * share();
    s.bytes = s.files * each;
    s.seconds = static_cast<double>(p.node(NodeId::read).busy) * 1e-9;
    s.bytes_squared = s.bytes * each * (1 + share());
    s.bytes_seconds = s.seconds * each * (1 + share());
    if (chance()) s.more_helps = chance();
  }

  Random random_;
};

// What the run would do of itself at this moment, if it had not just tried something.
Sizes decided(const Moment& m) {
  SizingOptions o;
  o.least = m.now;
  o.most = m.most;
  Sizing sizing(o);
  (void)sizing.look(load_of(m.figures));
  return sizing.now();
}

}  // namespace

TEST_CASE("load: advice is never what sizing has found useless, does by itself, or would undo") {
  std::map<std::string, int> seen;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const Moment m = Generator(i).moment();
    const Diagnosis d = diagnose(m.figures);
    const Sizes next = decided(m);
    CAPTURE(i);
    CAPTURE(d.line);
    // What is to be raised becomes more than it is, and is nothing that the run raises.
    const double threads = told(d.line, "raise pipeline.read_threads to");
    const double ahead = told(d.line, "pipeline.read_ahead to");
    const double slots = told(d.line, "raise pipeline.prefetch to");
    if (threads > 0) {
      ++seen["threads"];
      REQUIRE(threads > m.now.read_threads);
      REQUIRE(next.read_threads == m.now.read_threads);
      REQUIRE(m.figures.storage.more_helps != false);
    }
    if (ahead > 0) {
      ++seen["ahead"];
      REQUIRE(ahead > static_cast<double>(m.now.read_ahead));
      REQUIRE(m.figures.storage.more_helps != false);
      if (threads == 0) REQUIRE(next.read_ahead == m.now.read_ahead);
    }
    if (slots > 0) {
      ++seen["slots"];
      REQUIRE(slots > m.now.slots);
      REQUIRE(next.slots == m.now.slots);
    }
    if (has(d.line, "raise budget.ram") && has(d.line, "reads at once")) {
      ++seen["budget for files"];
      REQUIRE(next.read_ahead == m.now.read_ahead);
      REQUIRE(m.figures.storage.more_helps != false);
    }
    if (has(d.line, "raise budget.ram") && has(d.line, "each batch more")) {
      ++seen["budget for batches"];
      REQUIRE(next.slots == m.now.slots);
    }
    // What the run is said to do by itself, it does.
    if (has(d.line, "raises its read threads by itself")) {
      ++seen["threads by itself"];
      REQUIRE(next.read_threads > m.now.read_threads);
    }
    if (has(d.line, "raises its read-ahead by itself")) {
      ++seen["ahead by itself"];
      REQUIRE(next.read_ahead > m.now.read_ahead);
    }
    if (has(d.line, "takes more of them by itself")) {
      ++seen["slots by itself"];
      REQUIRE(next.slots > m.now.slots);
    }
    // What is said to be of no use was tried, or cannot be tried.
    if (has(d.line, "more reads at once would not help")) {
      ++seen["useless"];
      REQUIRE((m.figures.storage.more_helps == false || m.most.read_threads == m.now.read_threads));
    }
    if (has(d.line, "bound by step"))
      REQUIRE(next.read_ahead <= std::max<std::size_t>(m.now.read_ahead, 2 * next.read_threads));
  }
  for (const char* kind : {"threads", "ahead", "slots", "budget for files", "budget for batches", "useless",
                           "threads by itself", "ahead by itself", "slots by itself"}) {
    CAPTURE(kind);
    CHECK(seen[kind] > 20);
  }
}

namespace {

// Storage and a device as they answer to sizes, over one interval.
struct World {
  double latency, bandwidth, device_rate;
  static constexpr double file = 110e3;

  [[nodiscard]] double rate(const Sizes& s) const {
    const double at_once = static_cast<double>(std::min<std::size_t>(s.read_threads, s.read_ahead));
    return std::min({at_once / latency, bandwidth / file, device_rate});
  }
  [[nodiscard]] double waits(const Sizes& s) const { return 1 - rate(s) / device_rate; }

  // 100 s of it.
  [[nodiscard]] GraphFigures under(const Sizes& s, const SizingOptions& o) const {
    const double at_once = static_cast<double>(std::min<std::size_t>(s.read_threads, s.read_ahead));
    PipelineOptions graph;
    graph.read_threads = s.read_threads;
    graph.decode_threads = 4;
    graph.batch = 50;
    graph.split.read_ahead = s.read_ahead;
    graph.split.chunks = s.read_ahead * 8;
    graph.split.slots = s.slots;
    GraphFigures p = planned_figures(graph);
    p.elapsed = 100'000'000'000;
    p.budget = std::size_t{8} << 30;
    p.unused = std::size_t{4} << 30;
    p.batch = graph.batch;
    p.slots = s.slots;
    p.read_ahead_bytes = graph.split.chunks * ChunkPool::chunk_bytes;
    p.sizes_threads = o.least.read_threads < o.most.read_threads;
    p.most = o.most;
    const double images = 100 * rate(s), fed = rate(s) / device_rate;
    // All that may read do so where storage is too slow, as many as are needed where it is not.
    const double active = rate(s) < device_rate ? at_once : std::min(rate(s) * latency, at_once);
    NodeFigures &read = p.node(NodeId::read), &step = p.node(NodeId::step);
    for (NodeFigures& n : p.nodes) n.available = p.elapsed * n.concurrency;
    read.busy = static_cast<Nanoseconds>(active * 1e11);
    read.items = static_cast<std::uint64_t>(images);
    step.busy = static_cast<Nanoseconds>(fed * 1e11);
    step.wait_input = p.elapsed - step.busy;
    step.items = static_cast<std::uint64_t>(images / p.batch);
    step.p50 = step.p99 = 1'000'000;
    const bool full = s.read_ahead <= s.read_threads || fed == 1;
    p.node(NodeId::sampler).wait_bound = full ? p.elapsed : 0;
    EdgeFigures& admitted = p.edges[edge_between(NodeId::sampler, NodeId::read)];
    admitted.mean = full ? admitted.limit : active;
    p.storage.files = images;
    p.storage.bytes = images * file;
    return p;
  }
};

}  // namespace

TEST_CASE("load: after a run has sized itself, following the advice feeds the device better") {
  int advised = 0, useless = 0, fed = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    Random random(15, 0, i, Purpose::synth);
    const auto between_powers = [&](double low, double high) {
      return low * std::pow(high / low, random.below(10'001) / 1e4);
    };
    const World world{between_powers(1e-4, 2), between_powers(1e5, 1e10), between_powers(20, 5000)};
    SizingOptions o;
    o.least = {1 + random.below(64), 1 + random.below(128), 3};
    o.most = {o.least.read_threads + random.below(2) * random.below(200),
              o.least.read_ahead + random.below(2) * random.below(500), 3};
    Sizing sizing(o);
    for (int look = 0; look < 40; ++look) (void)sizing.look(load_of(world.under(sizing.now(), o)));
    const Sizes now = sizing.now();
    GraphFigures p = world.under(now, o);
    p.storage.more_helps = sizing.more_helps();
    const std::string line = diagnose(p).line;
    CAPTURE(i);
    CAPTURE(line);
    CAPTURE(now.read_threads);
    CAPTURE(now.read_ahead);
    CHECK_FALSE(has(line, "by itself"));  // it has had the time
    Sizes wanted = now;
    if (const double n = told(line, "raise pipeline.read_threads to"); n > 0)
      wanted.read_threads = static_cast<unsigned>(n);
    if (const double n = told(line, "pipeline.read_ahead to"); n > 0)
      wanted.read_ahead = static_cast<std::size_t>(n);
    fed += has(line, "bound by step");
    useless += has(line, "would not help");
    if (wanted == now) continue;
    ++advised;
    CHECK(sizing.more_helps() != false);
    // Whether storage is shared cannot be seen from one interval of a world that has no other reads in it.
    if (world.bandwidth / World::file > world.rate(now) * 1.01) CHECK(world.waits(wanted) < world.waits(now));
    // And a run that may go as far by itself gets as far.
    if (world.bandwidth / World::file < world.rate(wanted) * 1.01) continue;
    SizingOptions freer = o;
    freer.most = {std::max(wanted.read_threads, o.most.read_threads),
                  std::max(wanted.read_ahead, o.most.read_ahead), 3};
    Sizing again(freer);
    for (int look = 0; look < 60; ++look) (void)again.look(load_of(world.under(again.now(), freer)));
    CHECK(world.waits(again.now()) <= std::max(world.waits(wanted), starving) + 0.02);
  }
  CHECK(advised > 100);
  CHECK(useless > 20);
  CHECK(fed > 100);
}

TEST_CASE("load: reads that feed the device, by its rate or by how long it waited") {
  Load l{.device_waited = 0.5, .device_rate = 400, .read_seconds = 0.1, .reads = 20};
  CHECK(enough_reads(l) == doctest::Approx(60));
  CHECK(more_reads(l, 50) == doctest::Approx(125));
  l.device_rate = 0;  // no step has ended
  CHECK(enough_reads(l) == doctest::Approx(60));
  l = {.device_waited = 0.999, .device_rate = 1e6, .read_seconds = 0.1, .reads = 10};
  CHECK(enough_reads(l) == doctest::Approx(120));  // no further than that from what is known
  CHECK(enough_reads({}) == 0);
}
