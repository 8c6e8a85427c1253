// The register of the graph's nodes and edges (graph/figures/nodes.hpp): concurrency, bounds and counters.
// Drawing and diagnosis read GraphFigures taken from it, never the running graph.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "graph/figures/sizes.hpp"
#include "graph/figures/stats.hpp"
#include "graph/figures/storage.hpp"

namespace sluice {

struct EdgeFigures {
  std::string bound;          // in words: "64 files, 16.0 MiB"
  double limit = 0;           // 0: not measured
  double used = 0, mean = 0;  // now, and over the run so far
};

// One of what `Make` makes of each node.
template <class Make>
[[nodiscard]] auto for_each_node(const Make& make) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{make(static_cast<NodeId>(i))...};
  }
  (std::make_index_sequence<node_count>());
}

struct GraphFigures {
  Nanoseconds elapsed = 0;  // 0: the graph as it will run, no figures yet
  std::array<NodeFigures, node_count> nodes = for_each_node([](NodeId id) { return NodeFigures{.id = id}; });
  std::array<EdgeFigures, edge_count> edges;  // as graph_edges has them
  std::size_t budget = 0, ledger_held = 0, ledger_peak = 0;
  std::uint64_t observations = 0;  // behind the edges' means
  StorageFigures storage = {};
  // What the advice of a diagnosis is worked out from.
  std::size_t unused = 0;                            // bytes of the budget that nothing was given
  std::size_t slot_bytes = 0, read_ahead_bytes = 0;  // of one batch slot; of all read-ahead
  unsigned slots = 0;
  std::uint32_t batch = 0;     // images of a batch
  bool sizes_threads = false;  // the number of read threads sizes itself
  Sizes most = {0, 0, 0};      // up to which the run goes by itself; 0: it does not
  [[nodiscard]] const NodeFigures& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
  [[nodiscard]] NodeFigures& node(NodeId id) { return nodes[static_cast<std::size_t>(id)]; }
};

// What happened between two moments of the same run: counters are differences, depths are the later ones.
[[nodiscard]] GraphFigures between(const GraphFigures& before, const GraphFigures& after);

class Registry {
 public:
  using Fill = std::function<double()>;
  [[nodiscard]] NodeStats& node(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  // `edge`: its number in graph_edges. `used`: how much is under way, asked while the graph runs; may be
  // none.
  void bound(std::size_t edge, std::string words, double limit, Fill used);

  void observe();  // looks at how full the edges are, for the mean; call it at regular times, on one thread
  [[nodiscard]] GraphFigures figures(Nanoseconds elapsed) const;

 private:
  struct Edge {
    EdgeFigures figures;
    Fill used;
    std::atomic<double> sum{0};
  };
  std::array<NodeStats, node_count> nodes_ = for_each_node([](NodeId id) { return NodeStats(id); });
  std::array<Edge, edge_count> edges_;
  std::atomic<std::uint64_t> observations_{0};
};

}  // namespace sluice
