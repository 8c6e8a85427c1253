// A ticket: the right of one sample to travel through the graph. It says which image it is and which place of
// which batch it will fill. Batches carry one sequence of numbers over the whole run, training and validation
// alike.
#pragma once

#include <cstdint>

namespace sluice {

enum class Split : std::uint8_t { train, val };

struct Ticket {
  Split split = Split::train;
  std::uint32_t epoch = 0;
  std::uint64_t index = 0;   // of the image within its split
  std::uint64_t batch = 0;   // number in the run's one sequence of batches
  std::uint32_t place = 0;   // within the batch
  std::uint32_t places = 0;  // how many this batch has
};

// Older means: admitted earlier. Everything that has to choose takes the oldest first.
[[nodiscard]] inline bool older(const Ticket& a, const Ticket& b) {
  return a.batch != b.batch ? a.batch < b.batch : a.place < b.place;
}

}  // namespace sluice
