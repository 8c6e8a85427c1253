#include "graph/figures/diagnosis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.hpp"
#include "graph/figures/load.hpp"

namespace sluice {
namespace {

// What a file takes of read-ahead when none has been read yet.
constexpr double usual_file = 110e3;

double milliseconds(Nanoseconds time) { return static_cast<double>(time) / 1e6; }
std::string readable(double bytes) { return readable_bytes(static_cast<std::size_t>(bytes)); }
// Of what somebody is to set: a round number.
double round_up(double number) {
  return static_cast<double>(std::bit_ceil(static_cast<std::size_t>(std::ceil(std::max(number, 1.0)))));
}
std::string device(const Load& l) {
  return fmt::format("device waited {:.0f} % of the time", 100 * l.device_waited);
}

Diagnosis bound_by(const char* what, const std::string& why) {
  return {what, "bound by " + std::string(what) + " " + why};
}
Diagnosis bound_by(NodeId id, const std::string& why) { return bound_by(name_of(id), why); }

Diagnosis by_bandwidth(const Load& l) {
  return bound_by(NodeId::read,
                  fmt::format("(storage gives {:.1f} MB/s, {:.0f} in flight share it, {}): more reads at "
                              "once would not help; copy the data to a faster disk, or store smaller files",
                              l.bytes_per_s / 1e6, l.reads, device(l)));
}

std::string found_at_storage(const GraphFigures& figures, const Load& l) {
  // The mean, as Little's law has it; the median if none has ended.
  const double ms = l.read_seconds > 0 ? 1e3 * l.read_seconds : milliseconds(figures.node(NodeId::read).p50);
  return fmt::format("storage {:.3g} ms a file, {:.0f} in flight, {}", ms, l.reads, device(l));
}

// What the run is about to do needs no advice.
Diagnosis by_itself(const GraphFigures& figures, const Load& l, const char* what, std::size_t now,
                    std::size_t most) {
  return bound_by(NodeId::read,
                  fmt::format("({}): the run raises its {} by itself, {} now and {} at most; copy the "
                              "data to local disk if that is not enough",
                              found_at_storage(figures, l), what, now, most));
}

double read_ahead(const GraphFigures& figures) {
  return figures.edges[edge_between(NodeId::sampler, NodeId::read)].limit;
}
double file_bytes(const GraphFigures& figures) {
  return figures.storage.files > 0 ? figures.storage.bytes / figures.storage.files : usual_file;
}

// Each read takes long, and there is no memory for more files: of the budget, or of what it gives to files.
Diagnosis by_credit(const GraphFigures& figures, const Load& l) {
  const double limit = read_ahead(figures), file = file_bytes(figures);
  if (limit < static_cast<double>(figures.most.read_ahead))
    return by_itself(figures, l, "read-ahead", static_cast<std::size_t>(limit), figures.most.read_ahead);
  const double wanted = round_up(more_reads(l, std::max(l.reads, 1.0)));
  // A file takes more while it is being read than once its size is known: as much more as it does now.
  const double missing =
      static_cast<double>(figures.read_ahead_bytes) * (wanted / std::max(l.reads, 1.0) - 1) -
      static_cast<double>(figures.unused);
  const bool fits = wanted * file <= static_cast<double>(figures.read_ahead_bytes + figures.unused);
  if (figures.budget > 0 && missing > 0 && (!fits || wanted <= limit))
    return bound_by("budget",
                    fmt::format("(read-ahead holds {} and was full {:.0f} % of the time, {}): raise "
                                "budget.ram by {} for {:.0f} reads at once, or copy the data to local disk",
                                readable_bytes(figures.read_ahead_bytes), 100 * l.no_credit,
                                found_at_storage(figures, l), readable(missing), wanted));
  const double files = std::max(wanted, round_up(more_reads(l, limit)));
  return bound_by(
      NodeId::read,
      fmt::format("({}): raise pipeline.read_ahead to {:.0f} (needs {} of budget) or copy the data "
                  "to local disk",
                  found_at_storage(figures, l), files, readable(files * file)));
}

// Each read takes long, and all threads are at it.
Diagnosis by_threads(const GraphFigures& figures, const Load& l) {
  const unsigned threads = figures.node(NodeId::read).concurrency;
  if (threads < figures.most.read_threads)
    return by_itself(figures, l, "read threads", threads, figures.most.read_threads);
  const double wanted = round_up(more_reads(l, threads)), limit = read_ahead(figures);
  // Threads that size themselves go as far as read-ahead lets them.
  if (figures.sizes_threads && wanted > limit && figures.most.read_threads >= figures.most.read_ahead)
    return by_credit(figures, l);
  const std::string ahead = fmt::format(" and pipeline.read_ahead to {:.0f} (needs {} of budget)", wanted,
                                        readable(wanted * file_bytes(figures)));
  return bound_by(NodeId::read,
                  fmt::format("({}): raise pipeline.read_threads to {:.0f}{} or copy the data to local disk",
                              found_at_storage(figures, l), wanted, wanted > limit ? ahead : ""));
}

// Whether more reads at once would help is known where they were tried. Where the run will try them by itself
// it is not told what would come of it.
bool by_storage(const GraphFigures& figures) {
  const bool will_try =
      figures.node(NodeId::read).concurrency < figures.most.read_threads && !figures.storage.more_helps;
  return !will_try && bandwidth_bound(figures.storage);
}

Diagnosis by_cores(const GraphFigures& figures, const Load& l) {
  const bool decode = figures.node(NodeId::decode).busy >= figures.node(NodeId::augment).busy;
  const NodeFigures& n = figures.node(decode ? NodeId::decode : NodeId::augment);
  const unsigned threads = figures.node(NodeId::decode).concurrency;
  return bound_by(
      n.id, fmt::format("({:.3g} ms an image, {} at a time, {}): raise pipeline.decode_threads above {} if "
                        "there are idle cores{}",
                        milliseconds(n.p50), threads, device(l), threads,
                        decode ? ", lower data.image_size or store smaller images"
                               : ", or set augment.policy to \"none\""));
}

Diagnosis by_slots(const GraphFigures& figures, const Load& l) {
  const std::string found = fmt::format("all {} batch slots in use {:.0f} % of the time, {}", figures.slots,
                                        100 * l.no_slot, device(l));
  const std::string each = readable_bytes(figures.slot_bytes);
  if (figures.slots < figures.most.slots)
    return bound_by("budget", fmt::format("({}): the run takes more of them by itself, {} at most", found,
                                          figures.most.slots));
  if (figures.unused >= figures.slot_bytes)
    return bound_by("budget", fmt::format("({}): raise pipeline.prefetch to {} (needs {} of budget)", found,
                                          figures.slots + 1, each));
  return bound_by("budget", fmt::format("({}): raise budget.ram by {} for each batch more, or lower "
                                        "train.batch",
                                        found, each));
}

Diagnosis by_lane(const GraphFigures& figures, const Load& l) {
  return bound_by(NodeId::lane,
                  fmt::format("({:.3g} ms an image, one at a time, {}): many files are bad, "
                              "larger than a ticket's grant or progressive; see quarantine.jsonl",
                              milliseconds(figures.node(NodeId::lane).p50), device(l)));
}

Diagnosis by_upload(const GraphFigures& figures, const Load& l) {
  return bound_by(NodeId::upload,
                  fmt::format("({:.3g} ms a batch, {}): lower train.batch or data.image_size, or "
                              "look at the link to the device",
                              milliseconds(figures.node(NodeId::upload).p50), device(l)));
}

// The device waits for data.
Diagnosis by_data(const GraphFigures& figures, const Load& l) {
  switch (limit_of(l)) {
    case Limit::cores:
      return by_cores(figures, l);
    case Limit::lane:
      return by_lane(figures, l);
    case Limit::upload:
      return by_upload(figures, l);
    case Limit::readers:
      return by_storage(figures) ? by_bandwidth(l) : by_threads(figures, l);
    case Limit::none:
      break;
  }
  // No stage is at its limit, so something holds it back: memory for files, or for batches. Files that are
  // not being read wait for something else than storage.
  const bool waits_for_storage = l.reads > 0.5 * std::max(l.admitted, 1.0);
  if (credit_binds(l) && waits_for_storage)
    return by_storage(figures) ? by_bandwidth(l) : by_credit(figures, l);
  if (slots_bind(l)) return by_slots(figures, l);
  return bound_by(
      "nothing",
      fmt::format("in particular ({}; read busy {:.0f} %, decode and augment {:.0f} %): the run is "
                  "short or the cores are shared",
                  device(l), 100 * l.readers_busy, 100 * l.cores_busy));
}

}  // namespace

Diagnosis diagnose(const GraphFigures& figures) {
  const NodeFigures &step = figures.node(NodeId::step), &read = figures.node(NodeId::read);
  if (figures.elapsed <= 0 || (step.items == 0 && step.wait_input == 0))
    return {"start-up", "bound by start-up: no batch went through step"};
  const Load l = load_of(figures);
  if (l.no_record > starving && l.no_record > l.device_waited)
    return bound_by(NodeId::log,
                    fmt::format("(step waited {:.0f} % of the time for a full record queue): write "
                                "log.dir to a faster disk or raise log.every",
                                100 * l.no_record));
  if (l.device_waited <= starving)
    return bound_by(NodeId::step,
                    fmt::format("(device busy {:.0f} % of the time, {:.1f} ms a batch): the data path "
                                "keeps up; only a faster device or a smaller model helps",
                                100 * (1 - l.device_waited), milliseconds(step.p50)));
  if (read.items == 0 && read.active > 0)
    return bound_by(NodeId::read,
                    fmt::format("(no file came back in {:.3g} s, {} in flight, {}): check the mount or the "
                                "disk",
                                static_cast<double>(figures.elapsed) * 1e-9, read.active, device(l)));
  return by_data(figures, l);
}

Diagnosis PartDiagnosis::so_far() const {
  const Lock lock(mutex_);
  const GraphFigures now = look_();
  return diagnose(between(begin_, now));
}

Diagnosis PartDiagnosis::part_over() {
  const Lock lock(mutex_);
  GraphFigures now = look_();
  const Diagnosis d = diagnose(between(begin_, now));
  begin_ = std::move(now);
  return d;
}

}  // namespace sluice
