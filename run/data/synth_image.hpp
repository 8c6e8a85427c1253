// Learnable pictures: a class is a pattern (stripes, rings, blobs, ...), while colour, scale, angle, light,
// noise and objects in front vary from picture to picture. The mean colour says nothing about the class.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace sluice {

constexpr int synth_classes_limit = 1000;

struct Painting {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // rows of width * 3 bytes
};

struct PictureOptions {
  int label = 0;     // below `classes`
  int classes = 10;  // up to synth_classes_limit; above 200, the classes differ in hue as well
  int size = 500;    // the longer side, about
};

[[nodiscard]] Painting paint(const PictureOptions& options, Random& random);

// How it is stored; ImageNet has a few grey and a few progressive files too.
struct Storage {
  int quality = 90;
  int subsampling = 2;  // 1 = 4:4:4, 2 = 4:2:0
  bool grey = false, progressive = false;
};
[[nodiscard]] Storage choose_storage(Random& random);

[[nodiscard]] std::vector<std::uint8_t> encode_jpeg(const Painting& picture,
                                                    const Storage& storage);  // empty: failed

}  // namespace sluice
