#include "graph/registry.hpp"

namespace sluice {

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
  const auto observations = static_cast<double>(observations_.load());
  for (const Edge& e : edges_) {
    p.edges.push_back(e.figures);
    if (!e.used || elapsed <= 0) continue;
    p.edges.back().used = e.used();
    p.edges.back().mean = observations > 0 ? e.sum / observations : p.edges.back().used;
  }
  return p;
}

}  // namespace sluice
