#include "graph/figures/layout.hpp"

#include "base/text.hpp"
#include "graph/memory/chunks.hpp"

namespace sluice {
namespace {

struct BoundFigures {
  std::string words;
  double limit = 0;  // 0: not measured
  Registry::Fill used = nullptr;
};

std::string at_most(std::size_t n, const char* what) { return "\u2264 " + std::to_string(n) + " " + what; }

BoundFigures figures_of(Bound bound, const PipelineOptions& o, const Fills& f) {
  const BudgetSplit& s = o.split;
  const double places = static_cast<double>(s.slots) * o.batch;
  switch (bound) {
    case Bound::files:
      return {at_most(s.read_ahead, "files"), static_cast<double>(s.read_ahead), f.in_flight};
    case Bound::chunks:
      return {"\u2264 " + readable_bytes(s.chunks * ChunkPool::chunk_bytes), static_cast<double>(s.chunks),
              f.chunks};
    case Bound::slots:
      return {at_most(s.slots, "slots") + ", " + readable_bytes(s.slots * s.slot_bytes), places, f.decoding};
    case Bound::in_slot:
      return {"in its slot", places, f.decoding};
    case Bound::to_lane:
      return {"too large or bad", places, f.lane};
    case Bound::lane:
      return {"one at a time, \u2264 " + readable_bytes(s.lane)};
    case Bound::ready:
      return {at_most(s.slots, "batches"), static_cast<double>(s.slots), f.ready};
    case Bound::device:
      return {at_most(o.device_queue, "batches"), static_cast<double>(o.device_queue), f.device};
    case Bound::records:
      return {at_most(o.log_queue, "records"), static_cast<double>(o.log_queue), f.records};
    case Bound::credit:
      return {"byte credits"};
    case Bound::slot:
      return {"batch slot"};
  }
  return {};
}

}  // namespace

void lay_out(Registry& r, const PipelineOptions& o, const Fills& f) {
  r.node(NodeId::read).resize(o.read_threads, 0);
  for (const NodeId id : {NodeId::decode, NodeId::augment}) r.node(id).resize(o.decode_threads, 0);
  for (std::size_t i = 0; i < edge_count; ++i) {
    BoundFigures b = figures_of(graph_edges[i].bound, o, f);
    r.bound(i, std::move(b.words), b.limit, std::move(b.used));
  }
}

GraphFigures planned_figures(const PipelineOptions& options) {
  Registry registry;
  lay_out(registry, options, {});
  GraphFigures figures = registry.figures(0);
  figures.budget = options.split.budget;
  return figures;
}

}  // namespace sluice
