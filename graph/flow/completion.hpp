// The completion table: the samples that are away from the graph, with a thread or a request. The graph waits
// for each of them. settle() lets go of all at once, so that what never comes back holds nothing up: a late
// result finds no entry and is dropped.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/guarded.hpp"
#include "graph/memory/sample.hpp"

namespace sluice {

class CompletionTable {
 public:
  struct Hooks {
    std::function<void(Sample*)> deliver;  // hands the sample on into the graph
    std::function<void()> hold, let_go;    // the graph must wait for one more, one less result
  };
  explicit CompletionTable(Hooks hooks) : hooks_(std::move(hooks)) {}

  [[nodiscard]] bool enter(Sample* sample);  // false: settled, nothing goes in any more
  // Takes the entry out. False: settled in the meantime, and the sample is no longer the caller's. Who has
  // taken it out must hand it on.
  [[nodiscard]] bool claim(Sample* sample);
  void hand_on(Sample* sample);
  void settle();
  [[nodiscard]] std::size_t size() const;

 private:
  Hooks hooks_;
  mutable Mutex mutex_;
  std::vector<Sample*> entries_ GUARDED_BY(mutex_);  // in no order; as long as what is in flight
  bool settled_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice
