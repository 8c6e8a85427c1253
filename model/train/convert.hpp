// Pixels to network input: byte b of channel c becomes (b/255 - mean[c]) / std[c]. The order of values stays
// (n, row, column, channel), which is what a channels-last tensor is in memory. Usable from CUDA and plain
// C++.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/train/mix.hpp"

#ifdef __CUDACC__
#define SLUICE_HOST_DEVICE __host__ __device__
#else
#define SLUICE_HOST_DEVICE
#endif

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

// A byte of an image and the same byte of its partner, mixed; exact for weights 1 and 0.
[[nodiscard]] constexpr float blended(std::uint8_t own, std::uint8_t other, const Mix& mix) {
  return mix.own * static_cast<float>(own) + mix.other * static_cast<float>(other);
}

[[nodiscard]] constexpr bool inside(const Box& box, int x, int y) {
  return x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
}

// One image of size x size pixels, mixed with its partner.
inline void convert_mixed(const std::uint8_t* own, const std::uint8_t* other, float* out, int size,
                          const Affine& affine, const Mix& mix) {
  const auto row = static_cast<std::size_t>(size);
  if (mix.kind == Mix::Kind::mixup) {
    for (std::size_t at = 0; at < 3 * row * row; at += 3)
      for (std::size_t c = 0; c < 3; ++c)
        out[at + c] = blended(own[at + c], other[at + c], mix) * affine.scale[c] + affine.shift[c];
    return;
  }
  convert(own, out, row * row, affine);
  for (int y = mix.box.y; y < mix.box.y + mix.box.height; ++y) {
    const std::size_t at = 3 * (static_cast<std::size_t>(y) * row + static_cast<std::size_t>(mix.box.x));
    convert(other + at, out + at, static_cast<std::size_t>(mix.box.width), affine);
  }
}

enum class Output { fp32, fp16, bf16 };

// A batch of size x size images to normalise, with each image's partner mixed in. `out` holds `type`.
struct Conversion {
  const std::uint8_t* pixels = nullptr;
  void* out = nullptr;
  Output type = Output::fp32;
  std::size_t count = 0;
  int size = 0;
  Affine affine{};
  Mix mix{};
};

inline constexpr std::size_t pixels_of_a_thread = 4;

// What one thread of the GPU does: four pixels, which are three aligned words. `pixels` must start on a word.
template <class T>
SLUICE_HOST_DEVICE inline void convert_part(const Conversion& job, T* out, std::size_t thread) {
  const std::size_t side = static_cast<std::size_t>(job.size), area = side * side, all = job.count * area;
  const std::size_t first = pixels_of_a_thread * thread;
  if (first >= all) return;
  const std::size_t here = all - first < pixels_of_a_thread ? all - first : pixels_of_a_thread;
  std::uint8_t own[3 * pixels_of_a_thread];
  if (here == pixels_of_a_thread) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(job.pixels + 3 * first);
    for (int i = 0; i < 12; ++i) own[i] = static_cast<std::uint8_t>(words[i / 4] >> (8 * (i % 4)));
  } else {
    for (std::size_t i = 0; i < 3 * here; ++i) own[i] = job.pixels[3 * first + i];
  }
  for (std::size_t i = 0; i < here; ++i) {
    const std::size_t pixel = first + i, image = pixel / area, within = pixel - image * area;
    const std::uint8_t* other = job.pixels + 3 * ((image ^ 1) * area + within);
    const bool swapped =
        job.mix.kind == Mix::Kind::cutmix &&
        inside(job.mix.box, static_cast<int>(within % side), static_cast<int>(within / side));
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint8_t byte = own[3 * i + c];
      const float value = job.mix.kind == Mix::Kind::mixup ? blended(byte, other[c], job.mix)
                                                           : static_cast<float>(swapped ? other[c] : byte);
      out[3 * pixel + c] = static_cast<T>(value * job.affine.scale[c] + job.affine.shift[c]);
    }
  }
}

}  // namespace sluice
