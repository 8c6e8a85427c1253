#include "graph/figures/registry.hpp"

#include <algorithm>

namespace sluice {
namespace {

// Counters are read one by one while others write them: a difference may come out a little below nothing.
Nanoseconds difference(Nanoseconds after, Nanoseconds before) {
  return std::max<Nanoseconds>(after - before, 0);
}

}  // namespace

GraphFigures between(const GraphFigures& before, const GraphFigures& after) {
  GraphFigures figures = after;
  figures.elapsed = difference(after.elapsed, before.elapsed);
  for (NodeFigures& n : figures.nodes) {
    const NodeFigures& then = before.node(n.id);
    n.items -= std::min(n.items, then.items);
    n.available = difference(n.available, then.available);
    n.busy = difference(n.busy, then.busy);
    n.wait_input = difference(n.wait_input, then.wait_input);
    n.wait_bound = difference(n.wait_bound, then.wait_bound);
    n.times = n.times.since(then.times);
    n.p50 = n.times.percentile(0.50);
    n.p99 = n.times.percentile(0.99);
  }
  figures.observations -= std::min(figures.observations, before.observations);
  for (std::size_t i = 0; i < edge_count; ++i) {
    EdgeFigures& e = figures.edges[i];
    const double sum = e.mean * static_cast<double>(after.observations) -
                       before.edges[i].mean * static_cast<double>(before.observations);
    e.mean =
        figures.observations > 0 ? std::max(sum, 0.0) / static_cast<double>(figures.observations) : e.used;
  }
  figures.storage = after.storage.since(before.storage);
  return figures;
}

void Registry::bound(std::size_t edge, std::string words, double limit, Fill used) {
  edges_[edge].figures = {.bound = std::move(words), .limit = limit};
  edges_[edge].used = std::move(used);
}

void Registry::observe() {
  for (Edge& e : edges_)
    if (e.used) e.sum = e.sum + e.used();
  ++observations_;
}

GraphFigures Registry::figures(Nanoseconds elapsed) const {
  GraphFigures figures;
  figures.elapsed = elapsed;
  for (std::size_t i = 0; i < node_count; ++i) figures.nodes[i] = nodes_[i].figures(elapsed);
  figures.observations = observations_.load();
  const auto observations = static_cast<double>(figures.observations);
  for (std::size_t i = 0; i < edge_count; ++i) {
    const Edge& e = edges_[i];
    EdgeFigures& edge = figures.edges[i] = e.figures;
    if (!e.used || elapsed <= 0) continue;
    edge.used = e.used();
    edge.mean = observations > 0 ? e.sum / observations : edge.used;
  }
  return figures;
}

}  // namespace sluice
