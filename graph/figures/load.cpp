#include "graph/figures/load.hpp"

#include <algorithm>

namespace sluice {
namespace {

double share(Nanoseconds part, Nanoseconds whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}
double seconds(Nanoseconds time) { return static_cast<double>(time) * 1e-9; }

Load load_of(const GraphFigures& figures, const NodeFigures& steps) {
  const NodeFigures &read = figures.node(NodeId::read), &decode = figures.node(NodeId::decode);
  const NodeFigures &lane = figures.node(NodeId::lane), &upload = figures.node(NodeId::upload);
  Load l;
  l.device_waited = share(figures.node(NodeId::step).wait_input, figures.elapsed);
  if (steps.busy > 0) l.device_rate = static_cast<double>(steps.items) * figures.batch / seconds(steps.busy);
  l.step_usual = seconds(steps.p50);
  l.step_worst = seconds(steps.p99);
  if (read.items > 0) l.read_seconds = seconds(read.busy) / static_cast<double>(read.items);
  l.reads = share(read.busy, figures.elapsed);
  l.admitted = figures.edges[edge_between(NodeId::sampler, NodeId::read)].mean;
  if (figures.elapsed > 0) l.bytes_per_s = figures.storage.bytes / seconds(figures.elapsed);
  l.readers_busy = share(read.busy, read.available);
  l.cores_busy =
      share(decode.busy + figures.node(NodeId::augment).busy, decode.available);  // they share threads
  l.lane_busy = share(lane.busy, lane.available);
  l.upload_busy = share(upload.busy, upload.available);
  l.no_credit = share(figures.node(NodeId::sampler).wait_bound, figures.elapsed);
  l.no_slot = share(figures.node(NodeId::gate).wait_bound, figures.elapsed);
  l.no_record = share(figures.node(NodeId::log).wait_bound, figures.elapsed);
  return l;
}

}  // namespace

Load load_of(const GraphFigures& part) { return load_of(part, part.node(NodeId::step)); }

Load load_between(const GraphFigures& before, const GraphFigures& after) {
  return load_of(between(before, after), after.node(NodeId::step));
}

Limit limit_of(const Load& l) {
  const double most = std::max({l.cores_busy, l.lane_busy, l.upload_busy, l.readers_busy});
  if (most < saturated) return Limit::none;
  // Where all cores are at work, others are slow for want of them; if another stage were the limit, the cores
  // would be idle.
  if (l.cores_busy >= saturated && l.cores_busy >= most - 0.2) return Limit::cores;
  if (most == l.lane_busy) return Limit::lane;
  if (most == l.upload_busy) return Limit::upload;
  return Limit::readers;
}

bool credit_binds(const Load& l) {
  const Limit limit = limit_of(l);
  return l.device_waited > starving && l.no_credit > 0.5 && (limit == Limit::none || limit == Limit::readers);
}

bool slots_bind(const Load& l) {
  return l.device_waited > starving && l.no_slot > 0.5 && limit_of(l) == Limit::none;
}

double enough_reads(const Load& l) {
  // What a device would take that was hardly ever fed is a guess: at most twelve times the reads of now.
  const double fed = 1 - l.device_waited, most = 12 * std::max(l.reads, 1.0);
  if (l.device_rate <= 0 || l.read_seconds <= 0) return std::min(1.5 * l.reads / std::max(fed, 0.1), most);
  return std::min(1.5 * l.device_rate * l.read_seconds, most);
}

double more_reads(const Load& l, double now) {
  return std::max(enough_reads(l), 1.25 * now / std::max(1 - l.device_waited, 0.25));
}

}  // namespace sluice
