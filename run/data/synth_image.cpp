#include "run/data/synth_image.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace sluice {
namespace {

using Colour = std::array<float, 3>;

Colour from_hsv(double hue, double saturation, double value) {
  const auto channel = [&](double n) {
    const double k = std::fmod(n + hue * 6, 6.0);
    return static_cast<float>(255 * value * (1 - saturation * std::max(0.0, std::min({k, 4 - k, 1.0}))));
  };
  return {channel(5), channel(3), channel(1)};
}

float fraction(float x) { return x - std::floor(x); }

// Distance to the middle of the cell: 0 there, 1/2 at its edge.
float middle(float x) { return std::abs(fraction(x) - 0.5f); }

float lattice(int x, int y, std::uint32_t salt) {
  std::uint32_t h =
      static_cast<std::uint32_t>(x) * 0x9E3779B1u ^ static_cast<std::uint32_t>(y) * 0x85EBCA77u ^ salt;
  h = (h ^ (h >> 15)) * 0x2C1B3C6Du;
  return static_cast<float>((h ^ (h >> 13)) & 0xFFFF) / 65535.0f;
}

float blobs(float u, float v, std::uint32_t salt) {
  const int x = static_cast<int>(std::floor(u)), y = static_cast<int>(std::floor(v));
  float a = u - static_cast<float>(x), b = v - static_cast<float>(y);
  a = a * a * (3 - 2 * a), b = b * b * (3 - 2 * b);
  const float top = std::lerp(lattice(x, y, salt), lattice(x + 1, y, salt), a);
  const float bottom = std::lerp(lattice(x, y + 1, salt), lattice(x + 1, y + 1, salt), a);
  return std::lerp(top, bottom, b);
}

// The ten motifs: positive inside, negative outside, in units of a cell.
float motif(int kind, float u, float v, std::uint32_t salt) {
  switch (kind) {
    case 0:
      return 0.25f - middle(v);
    case 1:
      return 0.25f - middle(u);
    case 2:
      return 0.25f - middle((u + v) * std::numbers::sqrt2_v<float> / 2);
    case 3:
      return (0.25f - middle(u / 2)) * (0.25f - middle(v / 2)) * 8;
    case 4:
      return 0.3f - std::hypot(middle(u), middle(v));
    case 5:
      return 0.1f - std::abs(std::hypot(middle(u), middle(v)) - 0.32f);
    case 6:
      return std::min(fraction(v) - 0.15f, 0.9f - fraction(v) - 2 * middle(u) * 0.95f);
    case 7:
      return std::max(std::min(0.12f - middle(u), 0.42f - middle(v)),
                      std::min(0.12f - middle(v), 0.42f - middle(u)));
    case 8:
      return 0.25f - middle(v + 1.2f * middle(u / 1.5f));
    default:
      return blobs(u * 1.3f, v * 1.3f, salt) - 0.5f;
  }
}

// Above ten classes, the inside or the outside carries a second, finer pattern.
float dressed(int style, float inside, float u, float v) {
  switch (style) {
    case 1:
      return std::min(inside, 0.25f - middle(v * 4));
    case 2:
      return std::min(inside, std::max(middle(u * 3) - 0.25f, middle(v * 3) - 0.25f));
    case 3:
      return std::max(inside, 0.2f - std::hypot(middle(u * 4), middle(v * 4)));
    case 4:
      return 0.06f - std::abs(inside);
    default:
      return inside;
  }
}

struct Ellipse {
  float x, y, width, height;
  Colour colour;
  [[nodiscard]] bool covers(float px, float py) const {
    const float a = (px - x) / width, b = (py - y) / height;
    return a * a + b * b < 1;
  }
};

// Above fifty classes, the pattern fills only a part of the picture.
bool in_layout(int layout, float x, float y) {
  if (layout == 1) return std::hypot(x - 0.5f, y - 0.5f) < 0.42f;
  if (layout == 2) return std::abs(x - 0.5f) > 0.2f || std::abs(y - 0.5f) > 0.2f;
  if (layout == 3) return (static_cast<int>(x * 4) + static_cast<int>(y * 4)) % 2 == 0;
  return true;
}

void choose_shape(Painting& picture, int size, Random& random) {
  constexpr std::array<double, 6> ratios{0.75, 0.75, 0.75, 0.667, 1.0, 0.6};
  const double ratio = ratios[random.below(ratios.size())] * random.uniform(0.97, 1.03);
  const double longer = random.uniform() < 0.6 ? size : size * random.uniform(0.7, 1.25);
  const int a = std::max(16, static_cast<int>(longer));
  const int b = std::max(16, static_cast<int>(longer * ratio));
  const bool portrait = random.uniform() < 0.25;
  picture.width = portrait ? b : a;
  picture.height = portrait ? a : b;
}

struct Palette {
  Colour inside, outside;
};

Palette choose_palette(const PictureOptions& options, Random& random) {
  const double hue =
      options.classes > 200 ? (options.label / 200 + random.uniform(-0.3, 0.3)) / 5 + 1 : random.uniform();
  const double dark = random.uniform(0.1, 0.45), light = dark + random.uniform(0.35, 0.55);
  Palette palette{from_hsv(std::fmod(hue, 1.0), random.uniform(0.2, 0.9), light),
                  from_hsv(std::fmod(hue + random.uniform(0, 1), 1.0), random.uniform(0.1, 0.8), dark)};
  if (random.uniform() < 0.5) std::swap(palette.inside, palette.outside);
  return palette;
}

}  // namespace

Painting paint(const PictureOptions& options, Random& random) {
  Painting picture;
  choose_shape(picture, options.size, random);
  const Palette palette = choose_palette(options, random);
  const int kind = options.label % 10, style = options.label / 10 % 5, layout = options.label / 50 % 4;

  const float longer = static_cast<float>(std::max(picture.width, picture.height));
  const float cell = longer / static_cast<float>(random.uniform(5, 11));
  const double angle = random.uniform(-0.2, 0.2);
  const float c = static_cast<float>(std::cos(angle)) / cell, s = static_cast<float>(std::sin(angle)) / cell;
  const float shift_u = static_cast<float>(random.uniform(0, 100)),
              shift_v = static_cast<float>(random.uniform(0, 100));
  const float slope_x = static_cast<float>(random.uniform(-0.4, 0.4)),
              slope_y = static_cast<float>(random.uniform(-0.4, 0.4));
  const std::uint32_t noise = 4 + random.below(28), salt = random.bits();
  std::uint32_t state = random.bits() | 1;

  std::vector<Ellipse> objects(random.below(4));
  for (Ellipse& e : objects)
    e = {static_cast<float>(random.uniform()), static_cast<float>(random.uniform()),
         static_cast<float>(random.uniform(0.05, 0.18)), static_cast<float>(random.uniform(0.05, 0.18)),
         from_hsv(random.uniform(), random.uniform(), random.uniform(0.1, 1))};

  picture.rgb.resize(static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height) * 3);
  std::uint8_t* out = picture.rgb.data();
  for (int row = 0; row < picture.height; ++row) {
    const float y = static_cast<float>(row) / static_cast<float>(picture.height);
    for (int column = 0; column < picture.width; ++column) {
      const float x = static_cast<float>(column) / static_cast<float>(picture.width);
      const float px = static_cast<float>(column), py = static_cast<float>(row);
      const float u = px * c - py * s + shift_u, v = px * s + py * c + shift_v;
      float share = 0;
      // One pixel of soft edge.
      if (in_layout(layout, x, y))
        share = std::clamp(0.5f + cell * dressed(style, motif(kind, u, v, salt), u, v), 0.0f, 1.0f);
      const Colour* flat = nullptr;
      for (const Ellipse& object : objects)
        if (object.covers(x, y)) flat = &object.colour;
      const float light = 1 + slope_x * (x - 0.5f) + slope_y * (y - 0.5f);
      state = state * 1664525u + 1013904223u;
      for (std::size_t k = 0; k < 3; ++k) {
        const float base = flat ? (*flat)[k] : std::lerp(palette.outside[k], palette.inside[k], share);
        const float grain =
            static_cast<float>(((state >> (8 * k + 4)) & 0xFF) * noise) / 256 - static_cast<float>(noise) / 2;
        *out++ = static_cast<std::uint8_t>(std::clamp(base * light + grain, 0.0f, 255.0f));
      }
    }
  }
  return picture;
}

Storage choose_storage(Random& random) {
  Storage storage;
  storage.quality = 75 + static_cast<int>(random.below(22));
  storage.subsampling = random.uniform() < 0.7 ? 2 : 1;
  storage.grey = random.uniform() < 0.02;
  storage.progressive = random.uniform() < 0.03;
  return storage;
}

}  // namespace sluice
