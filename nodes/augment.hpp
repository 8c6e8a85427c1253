// What happens to a training sample's pixels after decoding, in place: horizontal flip and random erasing, as
// torchvision's RandomHorizontalFlip and RandomErasing (area 0.02-0.33, ratio 0.3-3.3). Never for evaluation.
#pragma once

#include <array>
#include <cstdint>

#include "nodes/crop.hpp"
#include "nodes/random.hpp"

namespace sluice {

struct AugmentOptions {
  double flip = 0.5;   // probability
  double erase = 0.0;  // probability
  std::array<std::uint8_t, 3> fill{124, 116,
                                   104};  // RGB of an erased part: the data set's mean becomes 0 later
};

void flip_horizontally(std::uint8_t* pixels, ImageSize size);
void fill_box(std::uint8_t* pixels, ImageSize size, Box box, std::array<std::uint8_t, 3> colour);

// The part to erase; zero width if ten tries gave none smaller than the image.
[[nodiscard]] Box erase_box(ImageSize size, Random& random);

// `pixels` are RGB rows without gaps; the streams are the sample's own for Purpose::flip and Purpose::erase.
void augment(std::uint8_t* pixels, ImageSize size, const AugmentOptions& options, Random flip, Random erase);

}  // namespace sluice
