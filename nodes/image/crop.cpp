#include "nodes/image/crop.hpp"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

// Half to even, as Python's round().
int rounded(double value) { return static_cast<int>(std::nearbyint(value)); }

View whole_output(Box region, int out) { return {region, {out, out}, {0, 0, out, out}}; }

}  // namespace

View train_view(ImageSize image, int out, Range scale, Range ratio, Random& random) {
  const double area = static_cast<double>(image.width) * image.height;
  const double low = std::log(ratio[0]), high = std::log(ratio[1]);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(scale[0], scale[1]);
    const double aspect = std::exp(random.uniform(low, high));
    const int width = rounded(std::sqrt(target * aspect));
    const int height = rounded(std::sqrt(target / aspect));
    if (width < 1 || width > image.width || height < 1 || height > image.height) continue;
    const int y = static_cast<int>(random.below(static_cast<std::uint32_t>(image.height - height + 1)));
    const int x = static_cast<int>(random.below(static_cast<std::uint32_t>(image.width - width + 1)));
    return whole_output({x, y, width, height}, out);
  }

  const double own = static_cast<double>(image.width) / image.height;
  const auto [least, most] = std::minmax(ratio[0], ratio[1]);
  ImageSize part = image;
  if (own < least)
    part.height = std::clamp(rounded(part.width / least), 1, image.height);
  else if (own > most)
    part.width = std::clamp(rounded(part.height * most), 1, image.width);
  return whole_output(
      {(image.width - part.width) / 2, (image.height - part.height) / 2, part.width, part.height}, out);
}

View eval_view(ImageSize image, int resize, int out) {
  const int side = std::max(resize, out);
  const int shorter = std::min(image.width, image.height), longer = std::max(image.width, image.height);
  const int long_side = static_cast<int>(static_cast<double>(side) * longer / shorter);
  const ImageSize to = image.width <= image.height ? ImageSize{side, long_side} : ImageSize{long_side, side};
  return {{0, 0, image.width, image.height},
          to,
          {rounded((to.width - out) / 2.0), rounded((to.height - out) / 2.0), out, out}};
}

}  // namespace sluice
