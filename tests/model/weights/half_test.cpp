#include "model/weights/half.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

using namespace sluice;

namespace {

// By the definition: sign, exponent of 5 bits (biased by 15), fraction of 10.
double by_definition(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  const double size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

}  // namespace

TEST_CASE("half: every f16 and every bf16 becomes the same number in single precision") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = widened(half, Half::f16);
    const double sound = by_definition(bits);
    wrong +=
        std::isnan(sound) ? !std::isnan(wide) : wide != sound || std::signbit(wide) != std::signbit(sound);
    wrong += std::bit_cast<std::uint32_t>(widened(half, Half::bf16)) != bits << 16;
  }
  CHECK(wrong == 0);
}

TEST_CASE("half: a stretch of them, from any address") {
  const std::vector<unsigned char> from{0xff, 0x00, 0x3c, 0x00, 0xc0};
  std::vector<std::byte> to(8);
  widen(std::as_bytes(std::span(from)).subspan(1), Half::f16, to);
  float values[2];
  std::memcpy(values, to.data(), sizeof values);
  CHECK(values[0] == 1);
  CHECK(values[1] == -2);
}
