// What a pipeline is sized by: how many reads go on at once, how many files are read ahead, how many batch
// slots are in use. See graph/figures/sizing.hpp.
#pragma once

#include <cstddef>

namespace sluice {

struct Sizes {
  unsigned read_threads = 1;
  std::size_t read_ahead = 1;  // files
  unsigned slots = 1;          // batches
  bool operator==(const Sizes&) const = default;
};

}  // namespace sluice
