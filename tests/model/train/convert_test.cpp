#include "model/train/convert.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace sluice;

TEST_CASE("convert: each byte and channel follows the formula, at every length around the vector width") {
  const std::array<float, 3> mean{0.485f, 0.456f, 0.406f}, deviation{0.229f, 0.224f, 0.225f};
  const Affine affine = make_affine(mean, deviation);
  for (std::size_t pixels : {0, 1, 15, 16, 17, 31, 256, 1000}) {
    std::vector<std::uint8_t> bytes(3 * pixels);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
    std::vector<float> values(bytes.size() + 1, -77.0f);
    convert(bytes.data(), values.data(), pixels, affine);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const double expected = (bytes[i] / 255.0 - mean[i % 3]) / deviation[i % 3];
      CHECK(std::abs(values[i] - expected) < 1e-6);
    }
    CHECK(values.back() == -77.0f);
  }
}

TEST_CASE("convert: mixed images are made of the pixels that the labels' weights say") {
  const Affine affine = make_affine({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f});
  constexpr int size = 21;
  constexpr std::size_t values = 3 * size * size;
  std::vector<std::uint8_t> own(values), other(values);
  for (std::size_t i = 0; i < values; ++i) {
    own[i] = static_cast<std::uint8_t>(i * 37);
    other[i] = static_cast<std::uint8_t>(255 - i * 11);
  }
  std::vector<float> out(values);
  Mix mix{Mix::Kind::mixup, 0.25f, 0.75f, {}};
  convert_mixed(own.data(), other.data(), out.data(), size, affine, mix);
  for (std::size_t i = 0; i < values; ++i) {
    const double byte = 0.25 * own[i] + 0.75 * other[i];
    CHECK(std::abs(out[i] - (byte * affine.scale[i % 3] + affine.shift[i % 3])) < 1e-5);
  }
  for (const Box box : {Box{3, 5, 10, 16}, Box{0, 0, 21, 21}, Box{20, 20, 1, 1}, Box{4, 4, 0, 7}}) {
    mix = {Mix::Kind::cutmix, 0, 0, box};
    convert_mixed(own.data(), other.data(), out.data(), size, affine, mix);
    int from_other = 0;
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x)
        for (int c = 0; c < 3; ++c) {
          const auto i = static_cast<std::size_t>((y * size + x) * 3 + c);
          from_other += c == 0 && inside(box, x, y);
          CHECK(out[i] == normalised(inside(box, x, y) ? other[i] : own[i],
                                     affine.scale[static_cast<std::size_t>(c)],
                                     affine.shift[static_cast<std::size_t>(c)]));
        }
    CHECK(from_other == box.width * box.height);
  }
}
