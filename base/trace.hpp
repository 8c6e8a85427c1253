// A stretch of a thread's time that a profiler (Nsight Systems) shows under a name. Nothing in builds without
// CUDA, and next to nothing while no profiler looks.
#pragma once

#include <string>

namespace sluice {

class Trace {
 public:
  explicit Trace(const std::string& name);
  ~Trace();  // on the same thread; ranges nest
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
};

}  // namespace sluice
