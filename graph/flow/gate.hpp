// The slot gate: binds batch slots to batch numbers, strictly in order. A sample whose batch has no slot yet
// is parked: it holds its compressed bytes, but no thread. Pure bookkeeping; the graph calls it from one
// serial node.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "graph/memory/sample.hpp"
#include "graph/memory/slots.hpp"

namespace sluice {

class SlotGate {
 public:
  SlotGate(const std::vector<Slot*>& slots, std::uint64_t first_batch);

  // Each appends to `go` the samples that may go on now, with their slot set. A sample that no slot can take
  // would be waited for in vain: that is a programming error and throws std::logic_error.
  void arrive(Sample* sample, std::vector<Sample*>& go);
  void slot_came_back(Slot* slot, std::vector<Sample*>& go);  // one that was not here before may come, too

  [[nodiscard]] std::size_t parked() const { return parked_count_; }

 private:
  static void admit(Sample* sample, Slot* slot, std::vector<Sample*>& go);

  std::vector<Slot*> bound_;                           // few: searched from end to end
  std::uint64_t next_;                                 // the first batch without a slot
  std::unordered_map<std::uint64_t, Sample*> parked_;  // chains through next_parked
  std::size_t parked_count_ = 0;
};

}  // namespace sluice
