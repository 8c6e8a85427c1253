// When gradients were ready and when their sums over the ranks began and ended: shows that the two overlap,
// and how often there were any. Free of torch.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "base/result.hpp"

namespace sluice {

class ReduceTrace {
 public:
  struct Event {
    enum class Kind { gradient, began, ended } kind;
    std::size_t index;  // of the parameter, or of the bucket
    std::chrono::steady_clock::time_point time;
  };

  void name_parameters(std::vector<std::string> names);
  void add(Event::Kind kind, std::size_t index);  // on any thread
  [[nodiscard]] std::vector<Event> take();        // and forget them

  // In Chrome's format (chrome://tracing, Perfetto), without forgetting anything. `rank` becomes the process.
  Status write(const std::filesystem::path& path, int rank) const;

 private:
  mutable Mutex mutex_;
  std::vector<std::string> names_ GUARDED_BY(mutex_);
  std::vector<Event> events_ GUARDED_BY(mutex_);
};

}  // namespace sluice
