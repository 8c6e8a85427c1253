// What limited the run, in one line, with what to change. A pure function of the figures.
#pragma once

#include <string>

#include "graph/registry.hpp"

namespace sluice {

struct Diagnosis {
  std::string
      bound_by;  // "step", "read", "decode", "augment", "big lane", "upload", "log", "budget" or "start-up"
  std::string line;  // "bound by read (...): raise pipeline.read_threads ..."
};

[[nodiscard]] Diagnosis diagnose(const Picture& picture);

}  // namespace sluice
