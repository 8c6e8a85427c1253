// Reads a whole file into memory that its caller provides once the size is known. Errors that may pass (a
// network mount that stutters) are tried again with growing pauses, then end the run; a file that is empty or
// larger than the limit is bad content.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "graph/flow/stop.hpp"
#include "graph/memory/sample.hpp"

namespace sluice {

// Fills in where a file of `bytes` goes; false: no room here, the outcome is then Outcome::big().
using MakeRoom = FunctionRef<bool(std::size_t bytes, std::vector<iovec>& where)>;

struct ReadOptions {
  std::size_t max_file = 0;  // bytes; a larger one is bad
  int tries = 7;
  std::chrono::milliseconds first_pause{50};  // doubles each time: 3.15 s in all
};

[[nodiscard]] Outcome read_file(const std::string& path, const ReadOptions& options, MakeRoom make_room,
                                const Stop& stop);

// Whether the same call may succeed a moment later.
[[nodiscard]] bool may_pass(int error);

// Calls `attempt` until it succeeds (0) or fails for good; returns the last error number.
[[nodiscard]] int with_retries(const ReadOptions& options, const Stop& stop, FunctionRef<int()> attempt);

}  // namespace sluice
