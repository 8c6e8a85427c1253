#include "model/weights/half.hpp"

#include <bit>
#include <cstring>

namespace sluice {
namespace {

// IEEE 754 binary16: a sign, 5 bits of exponent, 10 of fraction.
std::uint32_t single_of_f16(std::uint32_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16, exponent = (half >> 10) & 0x1fU,
                      fraction = half & 0x3ffU;
  if (exponent == 0x1f) return sign | 0x7f800000U | (fraction << 13);  // infinite, or no number
  if (exponent != 0) return sign | ((exponent + 112) << 23) | (fraction << 13);
  // Below the normal ones: so many times 2^-24, which a float32 holds exactly.
  return sign | std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24F);
}

}  // namespace

float widened(std::uint16_t bits, Half kind) {
  const std::uint32_t wide = bits;
  return std::bit_cast<float>(kind == Half::bf16 ? wide << 16 : single_of_f16(wide));
}

void widen(std::span<const std::byte> from, Half kind, std::span<std::byte> to) {
  for (std::size_t i = 0; i < from.size() / 2; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from.data() + 2 * i, sizeof bits);
    const float value = widened(bits, kind);
    std::memcpy(to.data() + 4 * i, &value, sizeof value);
  }
}

}  // namespace sluice
