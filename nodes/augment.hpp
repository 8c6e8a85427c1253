// What happens to a training sample's pixels after decoding, which has flipped them already, in place and in
// the order of torchvision's reference: policy, random erasing (area 0.02-0.33, ratio 0.3-3.3). Never for
// evaluation.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/random.hpp"
#include "nodes/image/crop.hpp"

namespace sluice {

enum class Policy { none, trivial_wide };

struct AugmentOptions {
  Policy policy = Policy::none;
  double erase = 0.0;  // probability
  std::array<std::uint8_t, 3> fill{124, 116,
                                   104};  // RGB of an erased part: the data set's mean becomes 0 later
};

void fill_box(std::uint8_t* pixels, ImageSize size, Box box, std::array<std::uint8_t, 3> colour);

// The part to erase; zero width if ten tries gave none smaller than the image.
[[nodiscard]] Box erase_box(ImageSize size, Random& random);

// A sample's own streams, of Purpose::augment and Purpose::erase.
struct AugmentStreams {
  Random policy, erase;
};

// What a policy needs to work in: bytes for an image of this size.
[[nodiscard]] std::size_t augment_bytes(Policy policy, ImageSize size);

// `pixels` are RGB rows without gaps; `copy` holds augment_bytes(), its content is lost.
void augment(std::uint8_t* pixels, ImageSize size, const AugmentOptions& options, AugmentStreams random,
             std::span<std::uint8_t> copy);

}  // namespace sluice
