// How far training pixels are from those of a full decode with exact weights: what augment.decode = "fast"
// and decoding at a part of the size cost in quality.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nodes/data_path.hpp"

namespace sluice {

struct PixelDifference {
  double mean = 0;     // levels of 255, over all values
  double changed = 0;  // share of the values
  int largest = 0;
  double reduced = 0;  // share of the images that are decoded at a part of their size
};

// Of training samples `index` in epoch 0, one for each file. Files that cannot be decoded count for nothing.
[[nodiscard]] PixelDifference pixel_difference(const std::vector<std::string>& files,
                                               const DataPathOptions& options);

}  // namespace sluice
