#include "graph/figures/nodes.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace sluice;

namespace {

std::set<NodeId> reached_from(NodeId start) {
  std::set<NodeId> seen{start};
  for (bool more = true; more;) {
    more = false;
    for (const EdgeSpec& e : graph_edges)
      if (e.carrier != Carrier::feedback && seen.contains(e.from)) more |= seen.insert(e.to).second;
  }
  return seen;
}

}  // namespace

TEST_CASE("nodes: each has a name of its own") {
  std::set<std::string> names;
  for (std::size_t i = 0; i < node_count; ++i) names.insert(name_of(static_cast<NodeId>(i)));
  CHECK(names.size() == node_count);
  CHECK(std::string(name_of(NodeId::log)) == "log");
  CHECK(static_cast<std::size_t>(NodeId::log) + 1 == node_count);
}

TEST_CASE("nodes: a sample gets from the sampler to everywhere, and never round in a circle") {
  CHECK(reached_from(NodeId::sampler).size() == node_count);
  for (const EdgeSpec& e : graph_edges) {
    CAPTURE(name_of(e.from));
    CAPTURE(name_of(e.to));
    // An edge goes on, or comes back from where the flow has got to.
    const bool back = reached_from(e.to).contains(e.from);
    CHECK(back == (e.carrier == Carrier::feedback));
  }
}

TEST_CASE("nodes: no two edges between the same nodes") {
  std::set<std::pair<NodeId, NodeId>> seen;
  for (const EdgeSpec& e : graph_edges) CHECK(seen.insert({e.from, e.to}).second);
  CHECK(edge_between(NodeId::sampler, NodeId::read) == 0);
  CHECK(graph_edges[edge_between(NodeId::step, NodeId::gate)].bound == Bound::slot);
}

TEST_CASE("nodes: a port that is open, or wired twice, is seen") {
  CHECK(ports_are_wired(NodeId::gate, 2));
  CHECK_FALSE(ports_are_wired(NodeId::gate, 1));
  CHECK_FALSE(ports_are_wired(NodeId::gate, 3));
  CHECK_FALSE(ports_are_wired(NodeId::step, 1));  // has a queue and feedback, and sends no messages
  CHECK(ports_are_wired(NodeId::step, 0));
}
