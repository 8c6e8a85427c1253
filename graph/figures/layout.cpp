#include "graph/figures/layout.hpp"

#include "base/text.hpp"
#include "graph/memory/chunks.hpp"

namespace sluice {

NodeSet lay_out(Registry& r, const PipelineOptions& o, const Fills& f) {
  const BudgetSplit& s = o.split;
  NodeSet nodes{r.node("sampler", 1),  r.node("read", o.read_threads),
                r.node("gate", 1),     r.node("decode", o.decode_threads),
                r.node("big lane", 1), r.node("augment", o.decode_threads),
                r.node("collate", 1),  r.node("upload", 1),
                r.node("step", 1),     r.node("log", 1)};
  const double places = static_cast<double>(s.slots) * o.batch;
  const auto count = [](std::size_t n, const char* what) {
    return "\u2264 " + std::to_string(n) + " " + what;
  };
  r.edge("sampler", "read", count(s.read_ahead, "files"), static_cast<double>(s.read_ahead), f.in_flight);
  r.edge("read", "gate", "\u2264 " + readable_bytes(s.chunks * ChunkPool::chunk_bytes),
         static_cast<double>(s.chunks), f.chunks);
  r.edge("gate", "decode", count(s.slots, "slots") + ", " + readable_bytes(s.slots * s.slot_bytes), places,
         f.decoding);
  r.edge("gate", "big lane", "too large or bad", places, f.lane);
  r.edge("decode", "big lane", "too large or bad", places, f.lane);
  r.edge("decode", "augment", "in its slot", places, f.decoding);
  r.edge("big lane", "augment", "one at a time, \u2264 " + readable_bytes(s.lane), 0, nullptr);
  r.edge("augment", "collate", "in its slot", places, f.decoding);
  r.edge("collate", "upload", count(s.slots, "batches"), s.slots, f.ready);
  r.edge("upload", "step", count(o.device_queue, "batches"), o.device_queue, f.device);
  r.edge("step", "log", count(o.log_queue, "records"), o.log_queue, f.records);
  r.feedback("decode", "sampler", "byte credits");
  r.feedback("step", "gate", "batch slot");
  return nodes;
}

Picture planned_picture(const PipelineOptions& options) {
  Registry registry;
  (void)lay_out(registry, options, {});
  Picture p = registry.picture(0);
  p.budget = options.split.budget;
  return p;
}

}  // namespace sluice
