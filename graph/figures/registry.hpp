// The register of a graph's nodes and edges: names, concurrency, bounds and counters. Drawing and diagnosis
// read a Picture taken from it, never the running graph.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "graph/figures/stats.hpp"
#include "graph/figures/storage.hpp"

namespace sluice {

struct EdgeFigures {
  std::string from, to;
  std::string bound;          // in words: "64 files, 16.0 MiB"
  bool feedback = false;      // credit or slot coming back, against the flow
  double limit = 0;           // 0: not measured
  double used = 0, mean = 0;  // now, and over the run so far
};

struct Picture {
  Nanoseconds elapsed = 0;  // 0: the graph as it will run, no figures yet
  std::vector<NodeFigures> nodes;
  std::vector<EdgeFigures> edges;
  std::size_t budget = 0, ledger_held = 0, ledger_peak = 0;
  std::uint64_t observations = 0;  // behind the edges' means
  StorageFigures storage = {};
  // What the advice of a diagnosis is worked out from.
  std::size_t unused = 0;                            // bytes of the budget that nothing was given
  std::size_t slot_bytes = 0, read_ahead_bytes = 0;  // of one batch slot; of all read-ahead
  unsigned slots = 0;
  bool sizes_threads = false;  // the number of read threads sizes itself
  [[nodiscard]] const NodeFigures* node(const std::string& name) const;
  [[nodiscard]] const EdgeFigures* edge(const std::string& from, const std::string& to) const;
};

// What happened between two pictures of the same run: counters are differences, depths are the later ones.
[[nodiscard]] Picture between(const Picture& before, const Picture& after);

class Registry {
 public:
  using Fill = std::function<double()>;
  NodeStats& node(std::string name, unsigned concurrency);
  void edge(std::string from, std::string to, std::string bound, double limit, Fill used);
  void feedback(std::string from, std::string to, std::string what);

  void observe();  // looks at how full the edges are, for the mean; call it at regular times, on one thread
  [[nodiscard]] Picture picture(Nanoseconds elapsed) const;

 private:
  struct Edge {
    EdgeFigures figures;
    Fill used;
    std::atomic<double> sum{0};
  };
  std::deque<NodeStats> nodes_;
  std::deque<Edge> edges_;
  std::atomic<std::uint64_t> observations_{0};
};

}  // namespace sluice
