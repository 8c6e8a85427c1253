#include "nodes/augment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "nodes/image/trivial_augment.hpp"

using namespace sluice;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes ramp(ImageSize size) {
  Bytes pixels;
  for (int i = 0; i < size.width * size.height * 3; ++i) pixels.push_back(static_cast<std::uint8_t>(i));
  return pixels;
}

void run(Bytes& pixels, ImageSize size, const AugmentOptions& options, std::uint64_t index) {
  Bytes copy(augment_bytes(options.policy, size));
  augment(pixels.data(), size, options,
          {Random(1, 0, index, Purpose::augment), Random(1, 0, index, Purpose::erase)}, copy);
}

}  // namespace

TEST_CASE("erasing changes one box to the fill colour and nothing else") {
  const ImageSize size{40, 30};
  const AugmentOptions options{.erase = 1, .fill = {200, 100, 50}};
  for (std::uint64_t index = 0; index < 200; ++index) {
    Random stream(1, 0, index, Purpose::erase);
    stream.uniform();  // the decision whether to erase
    const Box box = erase_box(size, stream);
    Bytes pixels(40 * 30 * 3, 7);
    run(pixels, size, options, index);
    for (int y = 0; y < 30; ++y)
      for (int x = 0; x < 40; ++x) {
        const bool in_box = x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
        const std::uint8_t* pixel = &pixels[static_cast<std::size_t>((y * 40 + x) * 3)];
        REQUIRE(pixel[0] == (in_box ? 200 : 7));
        REQUIRE(pixel[1] == (in_box ? 100 : 7));
        REQUIRE(pixel[2] == (in_box ? 50 : 7));
      }
  }
}

TEST_CASE("erased boxes have the areas and ratios of RandomErasing") {
  double least = 1, most = 0, sum = 0;
  constexpr int draws = 5000;
  for (std::uint64_t i = 0; i < draws; ++i) {
    Random stream(2, 0, i, Purpose::erase);
    const Box box = erase_box({224, 224}, stream);
    REQUIRE(box.width > 0);
    REQUIRE(box.x >= 0);
    REQUIRE(box.y >= 0);
    REQUIRE(box.x + box.width <= 224);
    REQUIRE(box.y + box.height <= 224);
    const double aspect = static_cast<double>(box.height) / box.width;
    REQUIRE(aspect > 0.28);
    REQUIRE(aspect < 3.5);
    const double area = box.width * box.height / (224.0 * 224.0);
    least = std::min(least, area);
    most = std::max(most, area);
    sum += area;
  }
  CHECK(least < 0.025);
  CHECK(least > 0.018);
  CHECK(most > 0.32);
  CHECK(most < 0.335);
  CHECK(std::abs(sum / draws - 0.173) < 0.006);
}

TEST_CASE("an image too small to erase from stays as it is") {
  Bytes pixels = {1, 2, 3};
  run(pixels, {1, 1}, {.erase = 1}, 0);
  CHECK(pixels == Bytes{1, 2, 3});
}

TEST_CASE("policy and erasing come in this order, each from a stream of its own") {
  const ImageSize size{12, 10};
  const AugmentOptions options{.policy = Policy::trivial_wide, .erase = 0.5};
  int both = 0;
  for (std::uint64_t index = 0; index < 300; ++index) {
    Bytes expected = ramp(size), copy(expected.size());
    const Bytes before = expected;
    Random policy(1, 0, index, Purpose::augment), erase(1, 0, index, Purpose::erase);
    apply(draw_trivial(policy), expected.data(), size, copy);
    const bool changed = expected != before, erased = erase.uniform() < 0.5;
    if (erased) fill_box(expected.data(), size, erase_box(size, erase), options.fill);
    both += changed && erased;

    Bytes pixels = ramp(size);
    run(pixels, size, options, index);
    REQUIRE(pixels == expected);
  }
  CHECK(both > 60);
}

TEST_CASE("only a policy needs room for a copy of the image") {
  CHECK(augment_bytes(Policy::none, {224, 224}) == 0);
  CHECK(augment_bytes(Policy::trivial_wide, {224, 200}) == 224 * 200 * 3);
}
