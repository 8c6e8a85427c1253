#include "graph/figures/diagnosis.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"

namespace sluice {
namespace {

// A device that waits less than this is well fed; a stage busy more than this is the one that holds it up.
constexpr double fed = 0.05, saturated = 0.7;
// What a file takes of read-ahead when none has been read yet.
constexpr double usual_file = 110e3;

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[500];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
double of(Nanoseconds part, Nanoseconds whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}
double milliseconds(Nanoseconds time) { return static_cast<double>(time) / 1e6; }
std::string readable(double bytes) { return readable_bytes(static_cast<std::size_t>(bytes)); }

// The figures of a picture, as the verdicts need them. All are shares of time but for the last ones.
struct Shares {
  explicit Shares(const Picture& p)
      : step(*p.node("step")),
        read(*p.node("read")),
        decode(*p.node("decode")),
        augment(*p.node("augment")),
        lane(*p.node("big lane")),
        upload(*p.node("upload")),
        device_waited(of(step.wait_input, p.elapsed)),
        behind_log(of(p.node("log")->wait_bound, p.elapsed)),
        reading(of(read.busy, read.available)),
        cores(of(decode.busy + augment.busy, decode.available)),  // they share their threads
        in_lane(of(lane.busy, lane.available)),
        uploading(of(upload.busy, upload.available)),
        no_credit(of(p.node("sampler")->wait_bound, p.elapsed)),
        no_slot(of(p.node("gate")->wait_bound, p.elapsed)),
        in_flight(of(read.busy, p.elapsed)) {}

  const NodeFigures &step, &read, &decode, &augment, &lane, &upload;
  double device_waited, behind_log, reading, cores, in_lane, uploading, no_credit, no_slot;
  double in_flight;  // reads under way, on average
  [[nodiscard]] std::string device() const {
    return print("device waited %.0f %% of the time", 100 * device_waited);
  }
  [[nodiscard]] double read_ms() const {  // the mean, as Little's law has it; the median if none has ended
    return read.items > 0 ? of(read.busy, static_cast<Nanoseconds>(read.items)) / 1e6
                          : milliseconds(read.p50);
  }
  // Reads at once that would feed the device, if each takes as long as now; a quarter more for its jitter.
  [[nodiscard]] std::size_t enough_reads() const {
    const double times = 1.25 / std::max(1 - device_waited, 0.125);
    return std::bit_ceil(static_cast<std::size_t>(std::ceil(std::max(in_flight, 1.0) * times)));
  }
};

Diagnosis by_bandwidth(const Picture& p, const Shares& s) {
  const double rate = ratio(p.storage.bytes, static_cast<double>(p.elapsed) * 1e-9) / 1e6;
  return {"read", print("bound by read (storage gives %.1f MB/s, %.0f in flight share it, %s): more reads at "
                        "once would not help; copy the data to a faster disk, or store smaller files",
                        rate, s.in_flight, s.device().c_str())};
}

// Each read takes long, so more at once would help. What holds their number down: threads, read-ahead, or
// the budget.
Diagnosis by_latency(const Picture& p, const Shares& s) {
  const EdgeFigures* admitted = p.edge("sampler", "read");
  const double limit = admitted ? admitted->limit : 0;
  const auto wanted = static_cast<double>(s.enough_reads());
  const double file = p.storage.files > 0 ? p.storage.bytes / p.storage.files : usual_file;
  const double most = ratio(static_cast<double>(p.read_ahead_bytes + p.unused), file);
  const std::string found =
      print("storage %.3g ms a file, %.0f in flight, %s", s.read_ms(), s.in_flight, s.device().c_str());
  const bool threads_bind = s.reading >= saturated;
  if (threads_bind && (!p.sizes_threads || wanted <= limit))
    return {"read",
            print("bound by read (%s): raise pipeline.read_threads to %.0f%s or copy the data to local "
                  "disk",
                  found.c_str(), wanted,
                  wanted > limit ? print(" and pipeline.read_ahead to %.0f (needs %s of budget)", wanted,
                                         readable(wanted * file).c_str())
                                       .c_str()
                                 : "")};
  // A file takes more while it is being read than once its size is known: as much more as it does now.
  const double missing = static_cast<double>(p.read_ahead_bytes) * (wanted / std::max(s.in_flight, 1.0) - 1) -
                         static_cast<double>(p.unused);
  if (p.budget > 0 && missing > 0 && (wanted > most || wanted <= limit))
    return {"budget",
            print("bound by budget (read-ahead holds %s and was full %.0f %% of the time, %s): raise "
                  "budget.ram by %s for %.0f reads at once, or copy the data to local disk",
                  readable_bytes(p.read_ahead_bytes).c_str(), 100 * s.no_credit, found.c_str(),
                  readable(missing).c_str(), wanted)};
  return {"read",
          print("bound by read (%s): raise pipeline.read_ahead to %.0f (needs %s of budget) or copy the data "
                "to local disk",
                found.c_str(), wanted, readable(wanted * file).c_str())};
}

Diagnosis by_cores(const Shares& s) {
  const bool decode = s.decode.busy >= s.augment.busy;
  const NodeFigures& n = decode ? s.decode : s.augment;
  return {n.name,
          print("bound by %s (%.3g ms an image, %u at a time, %s): raise pipeline.decode_threads above %u if "
                "there are idle cores%s",
                n.name.c_str(), milliseconds(n.p50), s.decode.concurrency, s.device().c_str(),
                s.decode.concurrency,
                decode ? ", lower data.image_size or store smaller images"
                       : ", or set augment.policy to \"none\"")};
}

Diagnosis by_slots(const Picture& p, const Shares& s) {
  const std::string found = print("all %u batch slots in use %.0f %% of the time, %s", p.slots,
                                  100 * s.no_slot, s.device().c_str());
  const std::string each = readable_bytes(p.slot_bytes);
  if (p.unused >= p.slot_bytes)
    return {"budget", print("bound by budget (%s): raise pipeline.prefetch to %u (needs %s of budget)",
                            found.c_str(), p.slots + 1, each.c_str())};
  return {"budget", print("bound by budget (%s): raise budget.ram by %s for each batch more, or lower "
                          "train.batch",
                          found.c_str(), each.c_str())};
}

}  // namespace

Diagnosis diagnose(const Picture& p) {
  for (const char* name :
       {"sampler", "read", "gate", "decode", "augment", "big lane", "upload", "step", "log"})
    if (!p.node(name)) return {"start-up", "bound by start-up: the graph has not run"};
  const Shares s(p);
  if (p.elapsed <= 0 || (s.step.items == 0 && s.step.wait_input == 0))
    return {"start-up", "bound by start-up: no batch went through step"};

  if (s.behind_log > fed && s.behind_log > s.device_waited)
    return {"log", print("bound by log (step waited %.0f %% of the time for a full record queue): write "
                         "log.dir to a faster disk or raise log.every",
                         100 * s.behind_log)};
  if (s.device_waited < fed)
    return {"step", print("bound by step (device busy %.0f %% of the time, %.1f ms a batch): the data path "
                          "keeps up; only a faster device or a smaller model helps",
                          100 * (1 - s.device_waited), milliseconds(s.step.p50))};

  if (s.read.items == 0 && s.read.active > 0)
    return {"read",
            print("bound by read (no file came back in %.3g s, %lld in flight, %s): check the mount or the "
                  "disk",
                  static_cast<double>(p.elapsed) * 1e-9, static_cast<long long>(s.read.active),
                  s.device().c_str())};
  const double most = std::max({s.cores, s.in_lane, s.uploading, s.reading});
  if (most >= saturated) {
    // Where all cores are at work, others are slow for want of them; before a slow stage the cores would
    // idle.
    if (s.cores >= saturated && s.cores >= most - 0.2) return by_cores(s);
    if (most == s.in_lane)
      return {"big lane",
              print("bound by big lane (%.3g ms an image, one at a time, %s): many files are bad, "
                    "larger than a ticket's grant or progressive; see quarantine.jsonl",
                    milliseconds(s.lane.p50), s.device().c_str())};
    if (most == s.uploading)
      return {"upload",
              print("bound by upload (%.3g ms a batch, %s): lower train.batch or data.image_size, or "
                    "look at the link to the device",
                    milliseconds(s.upload.p50), s.device().c_str())};
    return bandwidth_bound(p.storage) ? by_bandwidth(p, s) : by_latency(p, s);
  }
  // Nothing is at its limit, so something holds it back: memory for files, or for batches.
  const EdgeFigures* admitted = p.edge("sampler", "read");
  const bool waits_for_storage = admitted && s.in_flight > 0.5 * std::max(admitted->mean, 1.0);
  if (s.no_credit > 0.5 && waits_for_storage)
    return bandwidth_bound(p.storage) ? by_bandwidth(p, s) : by_latency(p, s);
  if (s.no_slot > 0.5) return by_slots(p, s);
  return {
      "nothing",
      print("bound by nothing in particular (%s; read busy %.0f %%, decode and augment %.0f %%): the run is "
            "short or the cores are shared",
            s.device().c_str(), 100 * s.reading, 100 * s.cores)};
}

Diagnosis PartDiagnosis::so_far() const {
  const Lock lock(mutex_);
  const Picture now = look_();
  return diagnose(between(begin_, now));
}

Diagnosis PartDiagnosis::part_over() {
  const Lock lock(mutex_);
  Picture now = look_();
  const Diagnosis d = diagnose(between(begin_, now));
  begin_ = std::move(now);
  return d;
}

}  // namespace sluice
