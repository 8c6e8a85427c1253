#include "graph/figures/registry.hpp"

#include <algorithm>

namespace sluice {
namespace {

// Counters are read one by one while others write them: a difference may come out a little below nothing.
Nanoseconds difference(Nanoseconds after, Nanoseconds before) {
  return std::max<Nanoseconds>(after - before, 0);
}

}  // namespace

Picture between(const Picture& before, const Picture& after) {
  Picture p = after;
  p.elapsed = difference(after.elapsed, before.elapsed);
  for (NodeFigures& n : p.nodes) {
    const NodeFigures* then = before.node(n.name);
    if (!then) continue;
    n.items -= std::min(n.items, then->items);
    n.available = difference(n.available, then->available);
    n.busy = difference(n.busy, then->busy);
    n.wait_input = difference(n.wait_input, then->wait_input);
    n.wait_bound = difference(n.wait_bound, then->wait_bound);
    n.times = n.times.since(then->times);
    n.p50 = n.times.percentile(0.50);
    n.p99 = n.times.percentile(0.99);
  }
  p.observations -= std::min(p.observations, before.observations);
  for (EdgeFigures& e : p.edges) {
    const EdgeFigures* then = before.edge(e.from, e.to);
    if (!then) continue;
    const double sum = e.mean * static_cast<double>(after.observations) -
                       then->mean * static_cast<double>(before.observations);
    e.mean = p.observations > 0 ? std::max(sum, 0.0) / static_cast<double>(p.observations) : e.used;
  }
  p.storage = after.storage.since(before.storage);
  return p;
}

const NodeFigures* Picture::node(const std::string& name) const {
  for (const NodeFigures& n : nodes)
    if (n.name == name) return &n;
  return nullptr;
}

const EdgeFigures* Picture::edge(const std::string& from, const std::string& to) const {
  for (const EdgeFigures& e : edges)
    if (e.from == from && e.to == to) return &e;
  return nullptr;
}

NodeStats& Registry::node(std::string name, unsigned concurrency) {
  return nodes_.emplace_back(std::move(name), concurrency);
}

void Registry::edge(std::string from, std::string to, std::string bound, double limit, Fill used) {
  Edge& edge = edges_.emplace_back();
  edge.figures = {std::move(from), std::move(to), std::move(bound), false, limit, 0, 0};
  edge.used = std::move(used);
}

void Registry::feedback(std::string from, std::string to, std::string what) {
  edges_.emplace_back().figures = {std::move(from), std::move(to), std::move(what), true, 0, 0, 0};
}

void Registry::observe() {
  for (Edge& e : edges_)
    if (e.used) e.sum = e.sum + e.used();
  ++observations_;
}

Picture Registry::picture(Nanoseconds elapsed) const {
  Picture p;
  p.elapsed = elapsed;
  for (const NodeStats& n : nodes_) p.nodes.push_back(n.figures(elapsed));
  p.observations = observations_.load();
  const auto observations = static_cast<double>(p.observations);
  for (const Edge& e : edges_) {
    p.edges.push_back(e.figures);
    if (!e.used || elapsed <= 0) continue;
    p.edges.back().used = e.used();
    p.edges.back().mean = observations > 0 ? e.sum / observations : p.edges.back().used;
  }
  return p;
}

}  // namespace sluice
