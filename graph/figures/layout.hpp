// What a run's options make of the graph's nodes and edges: their concurrency and bounds. The running graph
// takes its counters from it; the drawing of a graph that has not run yet is the same without figures.
#pragma once

#include "graph/figures/registry.hpp"
#include "graph/figures/sizing.hpp"
#include "graph/memory/split.hpp"

namespace sluice {

struct PipelineOptions {
  unsigned read_threads = 1, decode_threads = 1;
  std::uint32_t batch = 1;  // places of the largest batch
  std::size_t place_bytes = 0;
  std::uint64_t first_batch = 0, batches = 0;  // the run goes through [first_batch, batches)
  unsigned device_queue = 1;                   // batches that may wait between upload and step
  unsigned log_queue = 256;                    // records that may wait between step and log
  BudgetSplit split;                           // what there is memory for
  std::optional<SizingOptions> sizing;         // none: all of it is used, by `read_threads`
};

// How full the edges are, asked while the graph runs.
struct Fills {
  Registry::Fill in_flight, chunks, decoding, lane, ready, device, records;
};

void lay_out(Registry& registry, const PipelineOptions& options, const Fills& fills);

// The graph as it will run.
[[nodiscard]] GraphFigures planned_figures(const PipelineOptions& options);

}  // namespace sluice
