// The register of a graph's nodes and edges: names, concurrency, bounds and counters. Drawing and diagnosis read
// a Picture taken from it, never the running graph.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "graph/stats.hpp"

namespace sluice {

struct EdgeFigures {
  std::string from, to;
  std::string bound;           // in words: "64 files, 16.0 MiB"
  bool feedback = false;       // credit or slot coming back, against the flow
  double used = 0, limit = 0;  // how full; limit 0 = not measured
};

struct Picture {
  Nanoseconds elapsed = 0;  // 0: the graph as it will run, no figures yet
  std::vector<NodeFigures> nodes;
  std::vector<EdgeFigures> edges;
  std::size_t budget = 0, ledger_held = 0, ledger_peak = 0;
  [[nodiscard]] const NodeFigures* node(const std::string& name) const;
  [[nodiscard]] const EdgeFigures* edge(const std::string& from, const std::string& to) const;
};

class Registry {
 public:
  using Fill = std::function<double()>;
  NodeStats& node(std::string name, unsigned concurrency);
  void edge(std::string from, std::string to, std::string bound, double limit, Fill used);
  void feedback(std::string from, std::string to, std::string what);

  [[nodiscard]] Picture picture(Nanoseconds elapsed) const;

 private:
  struct Edge {
    EdgeFigures figures;
    Fill used;
  };
  std::deque<NodeStats> nodes_;
  std::vector<Edge> edges_;
};

}  // namespace sluice
