#include "graph/figures/dot.hpp"

#include <doctest/doctest.h>

#include "graph/figures/layout.hpp"

using namespace sluice;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

GraphFigures planned() {
  PipelineOptions o;
  o.decode_threads = 8;
  o.read_threads = 16;
  o.batch = 256;
  o.split.slots = 3;
  o.split.slot_bytes = 38'535'168;
  o.split.read_ahead = 512;
  o.split.chunks = 8192;
  o.split.budget = std::size_t{1} << 30;
  return planned_figures(o);
}

// A run of 100 s in which each node was busy for the given share of its threads' time.
GraphFigures ran(double step, double read, double decode) {
  GraphFigures p = planned();
  p.elapsed = 100'000'000'000;
  for (NodeFigures& n : p.nodes) {
    const double busy = n.id == NodeId::step     ? step
                        : n.id == NodeId::read   ? read
                        : n.id == NodeId::decode ? decode
                                                 : 0.01;
    n.items = 1000;
    n.p50 = 84'000'000;
    n.available = p.elapsed * n.concurrency;
    n.busy = static_cast<Nanoseconds>(busy * static_cast<double>(p.elapsed) * n.concurrency);
    n.wait_input = n.available - n.busy;
  }
  return p;
}

}  // namespace

TEST_CASE("dot: a planned graph shows nodes, concurrency and bounds, and no figures") {
  const std::string dot = to_dot(planned(), "a \"title\"");
  CHECK(has(dot, "digraph sluice"));
  CHECK(has(dot, "a \\\"title\\\""));
  CHECK(has(dot, "\"decode\" [label=\"decode \u00d78\"]"));
  CHECK(has(dot, "\"sampler\" -> \"read\" [label=\"\u2264 512 files\""));
  CHECK(has(dot, "\u2264 3 slots, 110.2 MiB"));
  CHECK(has(dot, "style=dashed"));
  CHECK_FALSE(has(dot, "busy"));
  CHECK_FALSE(has(dot, "% full"));
}

TEST_CASE("dot: a run's graph shows figures, and edges coloured by how full they are") {
  GraphFigures p = ran(0.9, 0.5, 0.5);
  EdgeFigures& full = p.edges[edge_between(NodeId::sampler, NodeId::read)];
  full.mean = full.used = full.limit;
  const std::string dot = to_dot(p, "run");
  CHECK(has(dot, "busy 90 %"));
  CHECK(has(dot, "P50 84.0 ms"));
  CHECK(has(dot, "100 % full, now 100 %\", penwidth=2, color=\"0.000 0.85 0.80\""));  // red
  CHECK(has(dot, "#9aa5b1"));                                                         // empty
}
