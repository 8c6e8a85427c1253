#include "model/convert.hpp"

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
