#include "graph/diagnosis.hpp"

#include <algorithm>
#include <cstdio>

namespace sluice {
namespace {

// A device that waits less than this is well fed; a stage busy more than this is the one that holds it up.
constexpr double fed = 0.05, saturated = 0.7;

double share(Nanoseconds part, const NodeFigures& n, Nanoseconds elapsed) {
  return elapsed > 0 ? static_cast<double>(part) / (static_cast<double>(elapsed) * n.concurrency) : 0;
}

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[400];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace

Diagnosis diagnose(const Picture& p) {
  const NodeFigures *step = p.node("step"), *read = p.node("read"), *decode = p.node("decode"),
                    *sampler = p.node("sampler"), *log = p.node("log");
  if (!step || !read || !decode || !sampler || !log || p.elapsed <= 0 || step->items == 0)
    return {"start-up", "bound by start-up: no batch went through step"};

  const double waited = share(step->wait_input, *step, p.elapsed);
  const double behind_log = share(log->wait_bound, *step, p.elapsed);
  if (behind_log > fed && behind_log > waited)
    return {"log", print("bound by log (step waited %.0f %% of the time for a full record queue): write "
                         "log.dir to a faster "
                         "disk or raise log.every",
                         100 * behind_log)};
  if (waited < fed)
    return {"step", print("bound by step (device busy %.0f %% of the time, %.1f ms a batch): the data path "
                          "keeps up; only a "
                          "faster device or a smaller model helps",
                          100 * share(step->busy, *step, p.elapsed), static_cast<double>(step->p50) / 1e6)};

  const NodeFigures* busiest = nullptr;
  double most = 0;
  for (const char* name : {"read", "decode", "augment", "big lane", "upload"}) {
    const NodeFigures* n = p.node(name);
    if (!n) continue;
    const double busy = share(n->busy, *n, p.elapsed);
    if (busy > most) most = busy, busiest = n;
  }
  const std::string device = print("device waited %.0f %% of the time", 100 * waited);
  if (busiest && most >= saturated) {
    const std::string name = busiest->name;
    const double each = static_cast<double>(busiest->p50) / 1e6;
    std::string advice = "see the graph (sluice graph RUN)";
    if (name == "read")
      advice = print("raise pipeline.read_threads above %u or copy the data to a faster disk",
                     busiest->concurrency);
    else if (name == "decode" || name == "augment")
      advice =
          print("raise pipeline.decode_threads above %u if there are idle cores, or lower data.image_size",
                busiest->concurrency);
    else if (name == "big lane")
      advice = "many files are bad, larger than a ticket's grant or progressive: see quarantine.jsonl";
    return {name, print("bound by %s (%.1f ms each, %u at a time, %s): %s", name.c_str(), each,
                        busiest->concurrency, device.c_str(), advice.c_str())};
  }
  const double starved = share(sampler->wait_bound, *sampler, p.elapsed);
  const EdgeFigures* ahead = p.edge("read", "gate");
  if (starved > 0.5 && share(decode->wait_input, *decode, p.elapsed) > 0.5)
    return {"budget",
            print("bound by budget (read-ahead was full %.0f %% of the time%s, %s): raise budget.ram or "
                  "pipeline.read_ahead",
                  100 * starved, ahead ? (", " + ahead->bound).c_str() : "", device.c_str())};
  return {
      "start-up",
      print(
          "bound by nothing in particular (%s; read busy %.0f %%, decode busy %.0f %%): the run is short or "
          "the cores are shared",
          device.c_str(), 100 * share(read->busy, *read, p.elapsed),
          100 * share(decode->busy, *decode, p.elapsed))};
}

}  // namespace sluice
