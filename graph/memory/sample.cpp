#include "graph/memory/sample.hpp"

namespace sluice {

std::size_t Sample::bytes_with(std::size_t chunks) {
  return sizeof(Sample) + sizeof(Sample*) +
         chunks * (sizeof(std::uint8_t*) + sizeof(std::span<const std::uint8_t>));
}

SamplePool::SamplePool(std::size_t count, std::size_t chunks_each) : samples_(count) {
  free_.reserve(count);
  for (Sample& s : samples_) {
    s.chunks.reserve(chunks_each);
    s.pieces.reserve(chunks_each);
    free_.push_back(&s);
  }
}

Sample* SamplePool::take() {
  const Lock lock(mutex_);
  if (free_.empty()) return nullptr;
  Sample* sample = free_.back();
  free_.pop_back();
  return sample;
}

void SamplePool::give_back(Sample* sample) {
  sample->slot = nullptr;
  sample->lane = false;
  sample->trouble.reset();
  sample->next_parked = nullptr;
  const Lock lock(mutex_);
  free_.push_back(sample);
}

}  // namespace sluice
