#include "graph/memory/slots.hpp"

#include <algorithm>
#include <stdexcept>

namespace sluice {

std::size_t Slot::bytes_for(std::uint32_t places, std::size_t place_bytes, std::size_t label_bytes) {
  const std::size_t samples =
      (places * place_bytes + alignof(std::int32_t) - 1) / alignof(std::int32_t) * alignof(std::int32_t);
  return round_to_pages(samples + places * label_bytes);
}

Slot::Slot(std::uint32_t places, std::size_t place_bytes, std::size_t label_bytes)
    : capacity_(places),
      place_bytes_(place_bytes),
      label_bytes_(label_bytes),
      memory_(bytes_for(places, place_bytes, label_bytes)) {
  // The labels stand at the end of the mapping: numbers are aligned there because it ends on a page.
  labels_ = memory_.data() + memory_.size() - places * label_bytes;
}

void Slot::bind(std::uint64_t batch) {
  batch_ = batch;
  places_ = 0;
}

void Slot::open(std::uint32_t places) {
  if (places == 0 || places > capacity_)
    throw std::logic_error("slot: " + std::to_string(places) + " places in one of " +
                           std::to_string(capacity_));
  places_ = places;
  left_.store(places_, std::memory_order_relaxed);
}

void Slot::mark_bad(Bad bad) {
  const Lock lock(bad_mutex_);
  bad_.push_back(std::move(bad));
}

std::vector<Bad> Slot::take_bad() {
  const Lock lock(bad_mutex_);
  std::vector<Bad> taken = std::exchange(bad_, {});
  std::stable_sort(taken.begin(), taken.end(), [](const Bad& a, const Bad& b) { return a.place < b.place; });
  return taken;
}

}  // namespace sluice
