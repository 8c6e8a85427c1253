#include "nodes/image/colour.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace sluice {
namespace {

using Table = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::uint32_t, 256>;

std::size_t pixel_count(ImageSize size) {
  return static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height);
}

template <class Value>
Table make_table(Value&& value) {
  Table table;
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value(i));
  return table;
}

void look_up(std::uint8_t* pixels, ImageSize size, const Table& table) {
  for (std::size_t i = 0, n = pixel_count(size) * 3; i < n; ++i) pixels[i] = table[pixels[i]];
}

void look_up(std::uint8_t* pixels, ImageSize size, const std::array<Table, 3>& tables) {
  for (std::size_t i = 0, n = pixel_count(size) * 3; i < n; i += 3)
    for (std::size_t c = 0; c < 3; ++c) pixels[i + c] = tables[c][pixels[i + c]];
}

// In single precision and cut off, not rounded: both show in the last bit.
std::uint8_t blend(int dull, int value, float factor) {
  const float mixed = static_cast<float>(dull) + factor * static_cast<float>(value - dull);
  return static_cast<std::uint8_t>(std::clamp(mixed, 0.0f, 255.0f));
}

int grey(const std::uint8_t* pixel) {
  return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
}

// A table for each channel, made from its histogram.
template <class MakeTable>
void by_histogram(std::uint8_t* pixels, ImageSize size, MakeTable&& make) {
  std::array<Histogram, 3> counts{};
  for (std::size_t i = 0, n = pixel_count(size) * 3; i < n; i += 3)
    for (std::size_t c = 0; c < 3; ++c) ++counts[c][pixels[i + c]];
  look_up(pixels, size, {make(counts[0]), make(counts[1]), make(counts[2])});
}

Table unchanged() {
  return make_table([](int i) { return i; });
}

bool seen(std::uint32_t count) { return count > 0; }

Table stretched(const Histogram& counts) {
  const auto low = std::find_if(counts.begin(), counts.end(), seen) - counts.begin();
  const auto high = counts.rend() - std::find_if(counts.rbegin(), counts.rend(), seen) - 1;
  if (high <= low) return unchanged();
  const double scale = 255.0 / static_cast<double>(high - low), offset = -static_cast<double>(low) * scale;
  return make_table([&](int i) { return std::clamp(i * scale + offset, 0.0, 255.0); });
}

Table flattened(const Histogram& counts, std::size_t pixels) {
  const std::uint32_t last = *std::find_if(counts.rbegin(), counts.rend(), seen);
  const std::size_t step = (pixels - last) / 255;
  if (step == 0) return unchanged();
  std::size_t below = step / 2;
  return make_table([&](int i) {
    const std::size_t value = below / step;
    below += counts[static_cast<std::size_t>(i)];
    return std::min<std::size_t>(value, 255);
  });
}

}  // namespace

void brightness(std::uint8_t* pixels, ImageSize size, double factor) {
  look_up(pixels, size, make_table([f = static_cast<float>(factor)](int i) { return blend(0, i, f); }));
}

void saturation(std::uint8_t* pixels, ImageSize size, double factor) {
  const float f = static_cast<float>(factor);
  for (std::size_t i = 0, n = pixel_count(size) * 3; i < n; i += 3) {
    const int dull = grey(pixels + i);
    for (std::size_t c = 0; c < 3; ++c) pixels[i + c] = blend(dull, pixels[i + c], f);
  }
}

void contrast(std::uint8_t* pixels, ImageSize size, double factor) {
  const std::size_t count = pixel_count(size);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<std::size_t>(grey(pixels + i * 3));
  const int mean = static_cast<int>((2 * sum + count) / (2 * count));  // to the nearest, halves up
  look_up(pixels, size,
          make_table([mean, f = static_cast<float>(factor)](int i) { return blend(mean, i, f); }));
}

void sharpness(std::uint8_t* pixels, ImageSize size, double factor, std::span<std::uint8_t> copy) {
  const float f = static_cast<float>(factor);
  const std::size_t row = static_cast<std::size_t>(size.width) * 3;
  std::copy_n(pixels, pixel_count(size) * 3, copy.begin());
  for (int y = 1; y < size.height - 1; ++y) {
    const std::uint8_t* here = copy.data() + static_cast<std::size_t>(y) * row;
    const std::uint8_t *above = here - row, *under = here + row;
    std::uint8_t* to = pixels + static_cast<std::size_t>(y) * row;
    for (std::size_t i = 3; i + 3 < row; ++i) {
      const int sum = above[i - 3] + above[i] + above[i + 3] + here[i - 3] + 5 * here[i] + here[i + 3] +
                      under[i - 3] + under[i] + under[i + 3];
      to[i] = blend((2 * sum + 13) / 26, here[i], f);  // the weights add up to 13; never halfway
    }
  }
}

void posterize(std::uint8_t* pixels, ImageSize size, int bits) {
  look_up(pixels, size, make_table([bits](int i) { return i >> (8 - bits) << (8 - bits); }));
}

void solarize(std::uint8_t* pixels, ImageSize size, double threshold) {
  look_up(pixels, size, make_table([threshold](int i) { return i < threshold ? i : 255 - i; }));
}

void auto_contrast(std::uint8_t* pixels, ImageSize size) { by_histogram(pixels, size, stretched); }

void equalize(std::uint8_t* pixels, ImageSize size) {
  by_histogram(pixels, size, [n = pixel_count(size)](const Histogram& h) { return flattened(h, n); });
}

}  // namespace sluice
