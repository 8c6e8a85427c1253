#include "graph/figures/dot.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/printable.hpp"
#include "base/text.hpp"

namespace sluice {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    out += c;
  }
  return out + "\"";
}

std::string duration(Nanoseconds ns) {
  if (ns < 1'000'000) return fmt::format("{:.0f} \u00b5s", static_cast<double>(ns) / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6);
  return fmt::format("{:.2f} s", static_cast<double>(ns) / 1e9);
}

std::string node_label(const NodeFigures& n, Nanoseconds elapsed) {
  std::string label = name_of(n.id) + (n.concurrency > 1 ? fmt::format(" \u00d7{}", n.concurrency) : "");
  if (elapsed <= 0) return label;
  const double all = std::max(static_cast<double>(n.available), 1.0);
  label += fmt::format("\n{} items, {} queued", n.items, n.queued);
  label += fmt::format("\nbusy {:.0f} %, idle {:.0f} %", 100 * static_cast<double>(n.busy) / all,
                       100 * static_cast<double>(n.wait_input) / all);
  if (n.wait_bound > 0)
    label += fmt::format(", held up {:.0f} %", 100 * static_cast<double>(n.wait_bound) / all);
  if (n.items > 0) label += "\nP50 " + duration(n.p50) + ", P99 " + duration(n.p99);
  return label;
}

// Grey while empty, then green over yellow to red when full.
std::string colour(double full) {
  if (full <= 0.01) return "#9aa5b1";
  return fmt::format("{:.3f} 0.85 0.80", 0.33 * (1 - std::clamp(full, 0.0, 1.0)));
}

}  // namespace

std::string to_dot(const GraphFigures& figures, const std::string& title) {
  std::string heading = printable(title);
  if (figures.budget) heading += "\nbudget.ram " + readable_bytes(figures.budget);
  if (figures.elapsed > 0)
    heading += fmt::format(", ledger now {}, peak {}\nafter {}", readable_bytes(figures.ledger_held),
                           readable_bytes(figures.ledger_peak), duration(figures.elapsed));
  std::string out =
      "digraph sluice {\n  rankdir=LR;\n  labelloc=t;\n  fontname=\"Helvetica\";\n  label=" +
      quoted(heading) +
      ";\n  node [shape=box, style=\"rounded,filled\", fillcolor=\"#eef3f8\", color=\"#52606d\", "
      "fontname=\"Helvetica\", fontsize=11];\n  edge [fontname=\"Helvetica\", fontsize=9];\n";
  for (const NodeFigures& n : figures.nodes)
    out += "  " + quoted(name_of(n.id)) + " [label=" + quoted(node_label(n, figures.elapsed)) + "];\n";
  for (std::size_t i = 0; i < edge_count; ++i) {
    const EdgeSpec& spec = graph_edges[i];
    const EdgeFigures& e = figures.edges[i];
    out += "  " + quoted(name_of(spec.from)) + " -> " + quoted(name_of(spec.to)) + " [label=";
    const bool live = figures.elapsed > 0 && e.limit > 0;
    out += quoted(live ? e.bound + fmt::format("\n{:.0f} % full, now {:.0f} %", 100 * e.mean / e.limit,
                                               100 * e.used / e.limit)
                       : e.bound);
    if (spec.carrier == Carrier::feedback)
      out += ", style=dashed, color=\"#9aa5b1\", fontcolor=\"#616e7c\", constraint=false";
    else if (live)
      out += ", penwidth=2, color=" + quoted(colour(e.mean / e.limit));
    out += "];\n";
  }
  return out + "}\n";
}

}  // namespace sluice
