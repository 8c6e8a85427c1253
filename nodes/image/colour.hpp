// Changes of an image's colours in place, equal to Pillow's ImageEnhance and ImageOps byte for byte.
// `pixels` are RGB rows without gaps.
#pragma once

#include <cstdint>
#include <span>

#include "nodes/image/crop.hpp"

namespace sluice {

// Away from (factor above 1) or towards (below 1) a duller version of the image; 1 leaves it as it is.
void brightness(std::uint8_t* pixels, ImageSize size, double factor);  // duller: black
void saturation(std::uint8_t* pixels, ImageSize size, double factor);  // duller: the grey image
void contrast(std::uint8_t* pixels, ImageSize size, double factor);    // duller: the mean of the grey image
// Duller: smoothed over 3 x 3 pixels, except at the border. `copy` has room for all pixels.
void sharpness(std::uint8_t* pixels, ImageSize size, double factor, std::span<std::uint8_t> copy);

void posterize(std::uint8_t* pixels, ImageSize size, int bits);         // keeps the upper `bits` of each byte
void solarize(std::uint8_t* pixels, ImageSize size, double threshold);  // inverts what is not below it
void auto_contrast(std::uint8_t* pixels, ImageSize size);               // stretches each channel to 0-255
void equalize(std::uint8_t* pixels, ImageSize size);                    // flattens each channel's histogram

}  // namespace sluice
