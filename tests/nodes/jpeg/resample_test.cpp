#include "nodes/jpeg/resample.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

using namespace sluice;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes formula_image(int width, int height) {
  Bytes image;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        image.push_back(static_cast<std::uint8_t>(x * 7 + y * 13 + c * 29 + (x * y) % 31 * 5));
  return image;
}

std::uint64_t fnv(std::span<const std::uint8_t> data) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const std::uint8_t byte : data) value = (value ^ byte) * 0x100000001B3;
  return value;
}

// Feeds exactly the pixels that the view says it needs, one row or two at a time.
Bytes resample(Resampler& resampler, const Bytes& image, ImageSize size, const View& view,
               const Kernels& kernels = best_kernels(Weights::exact)) {
  const std::size_t stride = static_cast<std::size_t>(view.window.width) * 3;
  Bytes out(stride * static_cast<std::size_t>(view.window.height));
  resampler.start(view, size, 1, out.data(), stride, kernels);
  const Box source = resampler.source();
  const auto row = [&](int y) {
    const auto first = image.begin() + (static_cast<std::ptrdiff_t>(y) * size.width + source.x) * 3;
    Bytes pixels(first, first + static_cast<std::ptrdiff_t>(source.width) * 3);
    pixels.resize(pixels.size() + Resampler::row_padding, 0xEE);
    return pixels;
  };
  for (int y = source.y; y < source.y + source.height;) {
    CHECK_FALSE(resampler.done());
    const bool two = y % 3 != 0 && y + 1 < source.y + source.height;
    const Bytes one = row(y), next = two ? row(y + 1) : Bytes();
    resampler.push(one.data(), two ? next.data() : nullptr);
    y += two ? 2 : 1;
  }
  CHECK(resampler.done());
  return out;
}

constexpr ImageSize small{97, 61};

struct Golden {
  View view;
  std::array<int, 3> first;
  std::uint64_t hash;
};

// From pillow_golden.py.
const Golden golden[] = {
    {{{0, 0, 97, 61}, {97, 61}, {0, 0, 97, 61}}, {0, 29, 58}, 0x6f889d1aba52bc70},
    {{{0, 0, 97, 61}, {24, 24}, {0, 0, 24, 24}}, {37, 66, 95}, 0x9dd9ac2512bbf130},
    {{{11, 7, 50, 40}, {32, 32}, {0, 0, 32, 32}}, {147, 61, 64}, 0x801d8b1f6f8f4586},
    {{{90, 55, 7, 6}, {40, 40}, {0, 0, 40, 40}}, {170, 199, 228}, 0x630484c7624e5b04},
    {{{0, 0, 97, 61}, {61, 38}, {13, 3, 32, 32}}, {92, 50, 79}, 0x7100d0b38ddb28ad},
    {{{3, 0, 94, 61}, {32, 90}, {5, 50, 20, 33}}, {149, 178, 173}, 0x6ed9159b3f4ae272},
    {{{0, 0, 97, 61}, {1, 1}, {0, 0, 1, 1}}, {127, 127, 127}, 0xa32734196f09ea94},
    {{{96, 60, 1, 1}, {5, 5}, {0, 0, 5, 5}}, {41, 70, 99}, 0x49a16c24b2659aff},
};

}  // namespace

TEST_CASE("resampling equals Pillow's bit for bit, with one resampler for all") {
  const Bytes image = formula_image(97, 61);
  Resampler resampler;
  for (int round = 0; round < 2; ++round)
    for (const Golden& expected : golden) {
      const Bytes out = resample(resampler, image, small, expected.view);
      CAPTURE(expected.hash);
      for (std::size_t c = 0; c < 3; ++c) CHECK(out[c] == expected.first[c]);
      CHECK(fnv(out) == expected.hash);
    }
}

TEST_CASE("only the pixels that the window touches are needed") {
  CHECK(needed({{0, 0, 100, 80}, {100, 80}, {10, 20, 30, 40}}, {100, 80}) == Box{10, 20, 30, 40});
  CHECK(needed({{5, 6, 64, 64}, {32, 32}, {0, 0, 32, 32}}, {100, 80}) == Box{5, 6, 64, 64});
  // Halving: output i has the inputs 2i - 1 .. 2i + 2, less those outside the region.
  CHECK(needed({{0, 0, 64, 64}, {32, 32}, {8, 0, 4, 2}}, {64, 64}) == Box{15, 0, 10, 5});
  // At half the size, what is rounded outwards stays inside the image.
  CHECK(needed({{5, 6, 64, 64}, {32, 32}, {0, 0, 32, 32}}, {100, 80}, 2) == Box{2, 3, 33, 32});
  CHECK(needed({{0, 0, 65, 33}, {16, 16}, {0, 0, 16, 16}}, {65, 33}, 2) == Box{0, 0, 33, 17});
}

TEST_CASE("rows go out `stride` bytes apart and nothing is written between") {
  Bytes image = formula_image(40, 40);
  image.resize(image.size() + Resampler::row_padding);
  const View view{{0, 0, 40, 40}, {8, 8}, {0, 0, 8, 8}};
  Bytes out(8 * 30, 0xAB);
  Resampler resampler;
  resampler.start(view, {40, 40}, 1, out.data(), 30);
  for (std::size_t y = 0; y < 40; ++y) resampler.push(&image[y * 120]);
  for (std::size_t y = 0; y < 8; ++y)
    for (std::size_t i = 24; i < 30; ++i) CHECK(out[y * 30 + i] == 0xAB);
}

TEST_CASE("memory stays within the bound and is not taken again for a smaller image") {
  Resampler resampler;
  Bytes out(224 * 224 * 3);
  std::size_t most = 0;  // of the first, which is the largest
  for (const ImageSize size :
       {ImageSize{3000, 2000}, ImageSize{500, 375}, ImageSize{224, 224}, ImageSize{1, 1}}) {
    const View view{{0, 0, size.width, size.height}, {224, 224}, {0, 0, 224, 224}};
    Resampler fresh;
    fresh.start(view, size, 1, out.data(), 672);
    CHECK(fresh.held_bytes() <= resampler_bytes(size, 224));
    resampler.start(view, size, 1, out.data(), 672);
    if (most == 0) most = resampler.held_bytes();
    CHECK(resampler.held_bytes() == most);
  }
  resampler.release();
  CHECK(resampler.held_bytes() == 0);
}

TEST_CASE("plain and AVX2 kernels give the same pixels, exact and brief, mirrored or not") {
  if (!avx2_kernels(Weights::exact)) return;
  const Bytes image = formula_image(small.width, small.height);
  Resampler resampler;
  for (const Weights weights : {Weights::exact, Weights::brief})
    for (const bool mirrored : {false, true})
      for (const int to : {1, 5, 11, 23, 32, 61, 97, 150})
        for (const Box region :
             {Box{0, 0, 97, 61}, Box{3, 2, 41, 57}, Box{60, 50, 1, 1}, Box{20, 0, 77, 9}}) {
          const View view{region, {to, to}, {0, 0, to, to}, mirrored};
          CAPTURE(to);
          REQUIRE(resample(resampler, image, small, view, plain_kernels(weights)) ==
                  resample(resampler, image, small, view, *avx2_kernels(weights)));
        }
}

TEST_CASE("mirrored is the same from right to left") {
  const Bytes image = formula_image(small.width, small.height);
  Resampler resampler;
  View view{{5, 3, 80, 50}, {31, 20}, {2, 1, 25, 18}};
  const Bytes straight = resample(resampler, image, small, view);
  view.mirrored = true;
  const Bytes mirrored = resample(resampler, image, small, view);
  for (std::size_t y = 0; y < 18; ++y)
    for (std::size_t x = 0; x < 25; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        REQUIRE(straight[(y * 25 + x) * 3 + c] == mirrored[(y * 25 + 24 - x) * 3 + c]);
}

TEST_CASE("brief weights are one level off at most") {
  const Bytes image = formula_image(small.width, small.height);
  Resampler resampler;
  std::size_t off = 0, values = 0;
  for (const Golden& g : golden) {
    const Bytes exact = resample(resampler, image, small, g.view);
    const Bytes brief = resample(resampler, image, small, g.view, best_kernels(Weights::brief));
    for (std::size_t i = 0; i < exact.size(); ++i, ++values) {
      REQUIRE(std::abs(exact[i] - brief[i]) <= 1);
      off += exact[i] != brief[i];
    }
  }
  CHECK(off < values / 20);
}
