#include "graph/flow/gate.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sluice {

SlotGate::SlotGate(const std::vector<Slot*>& slots, std::uint64_t first_batch)
    : bound_(slots), next_(first_batch) {
  for (Slot* slot : bound_) slot->bind(next_++);
}

void SlotGate::admit(Sample* sample, Slot* slot, std::vector<Sample*>& go) {
  const Ticket& t = sample->ticket;
  if (!slot->is_open()) slot->open(t.places);
  if (t.places != slot->places() || t.place >= t.places)  // it would never be full, or too early
    throw std::logic_error("gate: place " + std::to_string(t.place) + " of " + std::to_string(t.places) +
                           " in batch " + std::to_string(t.batch) + ", which has " +
                           std::to_string(slot->places()));
  sample->slot = slot;
  go.push_back(sample);
}

void SlotGate::arrive(Sample* sample, std::vector<Sample*>& go) {
  if (sample->ticket.batch >= next_) {
    Sample*& head = parked_[sample->ticket.batch];
    sample->next_parked = head;
    head = sample;
    ++parked_count_;
    return;
  }
  for (Slot* slot : bound_)
    if (slot->batch() == sample->ticket.batch) return admit(sample, slot, go);
  throw std::logic_error("gate: batch " + std::to_string(sample->ticket.batch) + " has no slot any more");
}

void SlotGate::slot_came_back(Slot* slot, std::vector<Sample*>& go) {
  if (std::ranges::find(bound_, slot) == bound_.end()) bound_.push_back(slot);
  slot->bind(next_);
  const auto waiting = parked_.find(next_++);
  if (waiting == parked_.end()) return;
  for (Sample* sample = waiting->second; sample;) {
    Sample* const next = std::exchange(sample->next_parked, nullptr);
    admit(sample, slot, go);
    --parked_count_;
    sample = next;
  }
  parked_.erase(waiting);
}

}  // namespace sluice
