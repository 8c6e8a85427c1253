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
  edges_.push_back({{std::move(from), std::move(to), std::move(bound), false, 0, limit}, std::move(used)});
}

void Registry::feedback(std::string from, std::string to, std::string what) {
  edges_.push_back({{std::move(from), std::move(to), std::move(what), true, 0, 0}, nullptr});
}

Picture Registry::picture(Nanoseconds elapsed) const {
  Picture p;
  p.elapsed = elapsed;
  for (const NodeStats& n : nodes_) p.nodes.push_back(n.figures(elapsed));
  for (const Edge& e : edges_) {
    p.edges.push_back(e.figures);
    if (e.used && elapsed > 0) p.edges.back().used = e.used();
  }
  return p;
}

}  // namespace sluice
