// Pixels to network input: byte b of channel c becomes (b/255 - mean[c]) / std[c]. The order of values stays
// (n, row, column, channel), which is what a channels-last tensor is in memory. Usable from CUDA and plain
// C++.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice {

// The formula as one multiplication and one addition per value.
struct Affine {
  float scale[3];
  float shift[3];
};

[[nodiscard]] constexpr Affine make_affine(const std::array<float, 3>& mean,
                                           const std::array<float, 3>& std) {
  Affine affine{};
  for (std::size_t c = 0; c < 3; ++c) {
    affine.scale[c] = static_cast<float>(1.0 / (255.0 * std[c]));
    affine.shift[c] = static_cast<float>(-static_cast<double>(mean[c]) / std[c]);
  }
  return affine;
}

[[nodiscard]] constexpr float normalised(std::uint8_t byte, float scale, float shift) {
  return static_cast<float>(byte) * scale + shift;
}

// `pixels` pixels of three bytes each. Sixteen pixels at a time have a fixed pattern of channels, which lets
// the compiler use vector instructions.
inline void convert(const std::uint8_t* in, float* out, std::size_t pixels, const Affine& affine) {
  constexpr std::size_t block = 48;
  float scale[block], shift[block];
  for (std::size_t i = 0; i < block; ++i) scale[i] = affine.scale[i % 3], shift[i] = affine.shift[i % 3];
  const std::size_t values = 3 * pixels;
  std::size_t at = 0;
  for (; at + block <= values; at += block)
    for (std::size_t i = 0; i < block; ++i) out[at + i] = normalised(in[at + i], scale[i], shift[i]);
  for (std::size_t i = 0; at < values; ++at, ++i) out[at] = normalised(in[at], scale[i], shift[i]);
}

}  // namespace sluice
