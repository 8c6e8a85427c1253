// The figures of the graph as Graphviz DOT: bounds on the edges, and after or during a run the figures of
// each node and a colour on each edge by how full it is.
#pragma once

#include <string>

#include "graph/figures/registry.hpp"

namespace sluice {

[[nodiscard]] std::string to_dot(const GraphFigures& figures, const std::string& title);

}  // namespace sluice
