// torchvision's TrivialAugmentWide (31 bins, nearest neighbour, black fill): one random change for each
// sample, of a random strength. Equal to torchvision on Pillow images byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.hpp"
#include "nodes/image/crop.hpp"

namespace sluice {

// In torchvision's order; a draw is an index into it.
enum class TrivialOp : std::uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  saturation,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize
};

struct TrivialChange {
  static constexpr int ops = 14, bins = 31;
  TrivialOp op = TrivialOp::identity;
  int bin = 0;            // of the strength, 0 to 30
  bool negative = false;  // heeded only by what has a direction: shear_x to sharpness

  [[nodiscard]] double magnitude() const;  // 0 where there is none
};

// Three draws, always all of them and in this order: below(14) for the change, below(31) for its bin,
// below(2) for its sign.
[[nodiscard]] TrivialChange draw_trivial(Random& random);

// In place. `pixels` are RGB rows without gaps; `copy` has room for all of them, its content is lost.
void apply(const TrivialChange& change, std::uint8_t* pixels, ImageSize size, std::span<std::uint8_t> copy);

}  // namespace sluice
