// Which part of an image a sample shows: torchvision's RandomResizedCrop for training, Resize + CenterCrop
// for evaluation, as arithmetic on sizes alone. Nothing here touches a pixel, so a crop is known before
// decoding.
#pragma once

#include <array>

#include "base/box.hpp"
#include "base/random.hpp"

namespace sluice {

// Resample `region` of the source image to the size `to`; of that, only `window` goes out.
struct View {
  Box region;
  ImageSize to;
  Box window;
  bool mirrored = false;  // left and right of the window swapped
  bool operator==(const View&) const = default;
};

using Range = std::array<double, 2>;  // lower and upper bound, both above 0

// `out` x `out` pixels of a random part: area uniform in `scale` (a share of the image), aspect ratio
// log-uniform in `ratio`; after ten tries that do not fit, the central part with the nearest allowed ratio.
[[nodiscard]] View train_view(ImageSize image, int out, Range scale, Range ratio, Random& random);

// The short side resized to `resize`, and the central `out` x `out` of it. Configurations with resize < out
// are refused elsewhere; here `resize` is raised to `out`, so that the window always lies inside.
[[nodiscard]] View eval_view(ImageSize image, int resize, int out);

}  // namespace sluice
