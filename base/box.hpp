// Sizes and parts of images, in pixels.
#pragma once

namespace sluice {

struct ImageSize {
  int width = 0, height = 0;
  bool operator==(const ImageSize&) const = default;
};

struct Box {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Box&) const = default;
};

}  // namespace sluice
