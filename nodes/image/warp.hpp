// Moves the pixels of an image by an affine map, in place, as Pillow's nearest-neighbour transform does: each
// pixel of the result takes the one pixel it falls on, and black where it falls outside.
#pragma once

#include <cstdint>
#include <span>

#include "nodes/image/crop.hpp"

namespace sluice {

// From a place (x, y) of the result to the place (a x + b y + c, d x + e y + f) of the source.
struct WarpMap {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

// The maps of torchvision's affine() and rotate() on Pillow images.
[[nodiscard]] WarpMap shear_x(double level);  // rows move by `level` of their height; the top stays
[[nodiscard]] WarpMap shear_y(double level);
[[nodiscard]] WarpMap translation(int x, int y);
[[nodiscard]] WarpMap rotation(double degrees, ImageSize size);  // counter-clockwise about the centre

// `pixels` are RGB rows without gaps, both sides below 8192; `copy` has room for all of them.
void warp(std::uint8_t* pixels, ImageSize size, const WarpMap& map, std::span<std::uint8_t> copy);

}  // namespace sluice
