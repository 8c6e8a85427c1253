// How far training pixels are from those of a full decode with exact weights: what augment.decode = "fast"
// and decoding at a part of the size cost in quality.
#pragma once

#include <cstddef>
#include <span>

#include "nodes/data_path.hpp"

namespace sluice {

struct PixelDifference {
  double mean = 0;     // levels of 255, over all values
  double changed = 0;  // share of the values
  int largest = 0;
  double reduced = 0;  // share of the images that are decoded at a part of their size
};

// Of these items as the first training samples of epoch 0. Those that cannot be decoded count for nothing.
[[nodiscard]] PixelDifference pixel_difference(const Source& source, std::span<const std::size_t> items,
                                               const DataPathOptions& options);

}  // namespace sluice
