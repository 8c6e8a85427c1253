// What limited the run, in one line, with what to change. A pure function of the figures: of the whole run,
// or of a part of it (see between() in graph/registry.hpp).
#pragma once

#include <string>

#include "graph/registry.hpp"

namespace sluice {

struct Diagnosis {
  // "step", "read", "decode", "augment", "big lane", "upload", "log", "budget", "nothing" or "start-up"
  std::string bound_by;
  std::string line;  // "bound by read (...): raise pipeline.read_ahead ..."
};

[[nodiscard]] Diagnosis diagnose(const Picture& picture);

}  // namespace sluice
