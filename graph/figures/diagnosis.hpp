// What limited the run, in one line, with what to change. A pure function of the figures: of the whole run,
// or of a part of it (see between() in graph/figures/registry.hpp).
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "graph/figures/registry.hpp"

namespace sluice {

struct Diagnosis {
  // "step", "read", "decode", "augment", "big lane", "upload", "log", "budget", "nothing" or "start-up"
  std::string bound_by;
  std::string line;  // "bound by read (...): raise pipeline.read_ahead ..."
};

[[nodiscard]] Diagnosis diagnose(const GraphFigures& figures);

// Judges a run part by part. Any thread may ask at any time.
class PartDiagnosis {
 public:
  explicit PartDiagnosis(std::function<GraphFigures()> look) : look_(std::move(look)) {}
  [[nodiscard]] Diagnosis so_far() const;  // since the last part ended, or the run began
  [[nodiscard]] Diagnosis part_over();     // likewise, and begins the next part

 private:
  std::function<GraphFigures()> look_;
  mutable std::mutex mutex_;
  GraphFigures begin_;
};

}  // namespace sluice
