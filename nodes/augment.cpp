#include "nodes/augment.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "nodes/image/trivial_augment.hpp"

namespace sluice {
namespace {

std::uint8_t* pixel_at(std::uint8_t* pixels, ImageSize size, int x, int y) {
  return pixels +
         (static_cast<std::size_t>(y) * static_cast<std::size_t>(size.width) + static_cast<std::size_t>(x)) *
             3;
}

}  // namespace

void fill_box(std::uint8_t* pixels, ImageSize size, Box box, std::array<std::uint8_t, 3> colour) {
  for (int y = box.y; y < box.y + box.height; ++y)
    for (int x = box.x; x < box.x + box.width; ++x)
      std::copy(colour.begin(), colour.end(), pixel_at(pixels, size, x, y));
}

Box erase_box(ImageSize size, Random& random) {
  const double area = static_cast<double>(size.width) * size.height;
  const double low = std::log(0.3), high = std::log(3.3);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double part = area * random.uniform(0.02, 0.33);
    const double aspect = std::exp(random.uniform(low, high));
    const int height = static_cast<int>(std::nearbyint(std::sqrt(part * aspect)));
    const int width = static_cast<int>(std::nearbyint(std::sqrt(part / aspect)));
    if (height >= size.height || width >= size.width) continue;
    const int y = static_cast<int>(random.below(static_cast<std::uint32_t>(size.height - height + 1)));
    const int x = static_cast<int>(random.below(static_cast<std::uint32_t>(size.width - width + 1)));
    return {x, y, width, height};
  }
  return {};
}

std::size_t augment_bytes(Policy policy, ImageSize size) {
  if (policy == Policy::none) return 0;
  return static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 3;
}

void augment(std::uint8_t* pixels, ImageSize size, const AugmentOptions& options, AugmentStreams random,
             std::span<std::uint8_t> copy) {
  if (options.policy == Policy::trivial_wide) apply(draw_trivial(random.policy), pixels, size, copy);
  if (random.erase.uniform() < options.erase)
    fill_box(pixels, size, erase_box(size, random.erase), options.fill);
}

}  // namespace sluice
