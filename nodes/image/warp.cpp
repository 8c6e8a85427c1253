#include "nodes/image/warp.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace sluice {
namespace {

constexpr double degree = std::numbers::pi / 180, radian = 180 / std::numbers::pi;

// torchvision takes a shear as an angle in degrees, so the level goes there and back.
double shear_angle(double level) { return std::atan(level) * radian * degree; }

double to_15_digits(double value) { return std::round(value * 1e15) / 1e15; }

int fixed(double value) { return static_cast<int>(std::floor(value * 65536.0 + 0.5)); }

}  // namespace

WarpMap shear_x(double level) { return {.b = std::tan(shear_angle(level))}; }

WarpMap shear_y(double level) {
  const double angle = shear_angle(level);
  return {.d = -std::sin(-angle) / std::cos(angle)};
}

WarpMap translation(int x, int y) { return {.c = -static_cast<double>(x), .f = -static_cast<double>(y)}; }

// Rounded as Pillow does, so that a right angle has no trace of the other axis.
WarpMap rotation(double degrees, ImageSize size) {
  const double angle = -(degrees < 0 ? degrees + 360 : degrees) * degree;
  const double x = size.width / 2.0, y = size.height / 2.0;
  const double cosine = to_15_digits(std::cos(angle)), sine = to_15_digits(std::sin(angle));
  return {cosine, sine, -cosine * x - sine * y + x, -sine, cosine, sine * x - cosine * y + y};
}

// In 16.16 fixed point, from the centre of the pixel: a map in floating point would choose other neighbours.
void warp(std::uint8_t* pixels, ImageSize size, const WarpMap& map, std::span<std::uint8_t> copy) {
  const auto width = static_cast<std::size_t>(size.width);
  std::copy_n(pixels, width * static_cast<std::size_t>(size.height) * 3, copy.begin());
  const int a = fixed(map.a), b = fixed(map.b), d = fixed(map.d), e = fixed(map.e);
  int row_x = fixed(map.c + map.a * 0.5 + map.b * 0.5), row_y = fixed(map.f + map.d * 0.5 + map.e * 0.5);
  std::uint8_t* to = pixels;
  for (int y = 0; y < size.height; ++y, row_x += b, row_y += e) {
    int at_x = row_x, at_y = row_y;
    for (int x = 0; x < size.width; ++x, to += 3, at_x += a, at_y += d) {
      const int from_x = at_x >> 16, from_y = at_y >> 16;
      if (from_x < 0 || from_x >= size.width || from_y < 0 || from_y >= size.height) {
        to[0] = to[1] = to[2] = 0;
        continue;
      }
      const std::uint8_t* from =
          copy.data() + (static_cast<std::size_t>(from_y) * width + static_cast<std::size_t>(from_x)) * 3;
      to[0] = from[0], to[1] = from[1], to[2] = from[2];
    }
  }
}

}  // namespace sluice
