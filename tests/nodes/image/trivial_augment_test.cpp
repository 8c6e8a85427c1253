#include "nodes/image/trivial_augment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

using namespace sluice;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Op = TrivialOp;

std::vector<TrivialChange> all_changes(Op op) {
  std::vector<TrivialChange> all;
  for (int bin = 0; bin < TrivialChange::bins; ++bin)
    for (const bool negative : {false, true}) all.push_back({op, bin, negative});
  return all;
}

std::vector<Op> all_ops() {
  std::vector<Op> all;
  for (int op = 0; op < TrivialChange::ops; ++op) all.push_back(static_cast<Op>(op));
  return all;
}

// A channel that uses the whole range, and two that do not.
Bytes formula_image(ImageSize size) {
  Bytes image;
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x)
      for (int c = 0; c < 3; ++c)
        image.push_back(
            static_cast<std::uint8_t>((((x * 7 + y * 13 + (x * y) % 31 * 5) & 255) >> c) + c * 10));
  return image;
}

Bytes changed(Bytes pixels, ImageSize size, const TrivialChange& change) {
  Bytes copy(pixels.size());
  apply(change, pixels.data(), size, copy);
  return pixels;
}

// The same for grey images, one number for each pixel.
Bytes changed_grey(const Bytes& values, ImageSize size, const TrivialChange& change) {
  Bytes pixels;
  for (const std::uint8_t v : values) pixels.insert(pixels.end(), 3, v);
  pixels = changed(pixels, size, change);
  Bytes result;
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    CHECK((pixels[i] == pixels[i + 1] && pixels[i] == pixels[i + 2]));
    result.push_back(pixels[i]);
  }
  return result;
}

// From `tests/interop/trivial_augment.py golden`: hashes of torchvision's results for all bins and signs.
const std::uint64_t golden[] = {
    0xb2196350ec796be9,  // Identity
    0xd818bc67be246be1,  // ShearX
    0x60b2d0cdd38eb6d1,  // ShearY
    0x19daa986a3171c5e,  // TranslateX
    0xda25c0237cd1ff61,  // TranslateY
    0x6cf89ac0a72e87e7,  // Rotate
    0xb67d121c04a68c76,  // Brightness
    0xb54fa5e25f449736,  // Color
    0x74b99f89444d5c78,  // Contrast
    0x867188e085646b88,  // Sharpness
    0xd15a39beb1949e69,  // Posterize
    0x4d675da88cce8345,  // Solarize
    0x63e4d30f6728537d,  // AutoContrast
    0xa91de1128342aca5,  // Equalize
};

}  // namespace

TEST_CASE("trivial augment: every change of every strength equals torchvision's") {
  const ImageSize size{26, 24};
  const Bytes image = formula_image(size);
  for (const Op op : all_ops()) {
    CAPTURE(static_cast<int>(op));
    std::uint64_t hash = 0xCBF29CE484222325;
    for (const TrivialChange& change : all_changes(op))
      for (const std::uint8_t byte : changed(image, size, change)) hash = (hash ^ byte) * 0x100000001B3;
    CHECK(hash == golden[static_cast<std::size_t>(op)]);
  }
}

// The values below are Pillow's too.
TEST_CASE("trivial augment: geometry moves pixels and fills with black") {
  const ImageSize size{4, 4};
  const Bytes image = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const auto moved = [&](const TrivialChange& change) { return changed_grey(image, size, change); };
  CHECK(moved({Op::rotate, 20}) == Bytes{4, 8, 12, 16, 3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9, 13});
  CHECK(moved({Op::rotate, 10, true}) == Bytes{0, 5, 2, 0, 9, 10, 7, 3, 14, 11, 11, 8, 0, 15, 12, 0});
  CHECK(moved({Op::shear_x, 15}) == Bytes{1, 2, 3, 4, 6, 7, 8, 0, 10, 11, 12, 0, 15, 16, 0, 0});
  CHECK(moved({Op::shear_x, 15, true}) == Bytes{1, 2, 3, 4, 0, 5, 6, 7, 0, 9, 10, 11, 0, 0, 13, 14});
  CHECK(moved({Op::shear_y, 30}) == Bytes{1, 6, 11, 16, 5, 10, 15, 0, 9, 14, 0, 0, 13, 0, 0, 0});
  CHECK(moved({Op::translate_x, 2}) == Bytes{0, 0, 1, 2, 0, 0, 5, 6, 0, 0, 9, 10, 0, 0, 13, 14});
  CHECK(moved({Op::translate_y, 1, true}) == Bytes{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 0, 0, 0});
  CHECK(moved({Op::translate_y, 4}) == Bytes(16, 0));  // farther than the image is high
}

TEST_CASE("trivial augment: strengths follow torch.linspace to the last bit") {
  CHECK(TrivialChange{Op::translate_x, 15}.magnitude() == 15.999999046325684);  // moves by 15, not by 16
  CHECK(TrivialChange{Op::shear_x, 20}.magnitude() == 0.6600000262260437);
  CHECK(TrivialChange{Op::shear_y, 15, true}.magnitude() == -0.4950000047683716);
  CHECK(TrivialChange{Op::rotate, 30, true}.magnitude() == -135);
  CHECK(TrivialChange{Op::solarize, 0, true}.magnitude() == 255);  // no sign
  CHECK(TrivialChange{Op::posterize, 2}.magnitude() == 8);
  CHECK(TrivialChange{Op::posterize, 3}.magnitude() == 7);
  CHECK(TrivialChange{Op::posterize, 30, true}.magnitude() == 2);
  CHECK(TrivialChange{Op::equalize, 30, true}.magnitude() == 0);
}

TEST_CASE("trivial augment: brightness, contrast and colour") {
  const ImageSize size{4, 2};
  const Bytes image = {0, 50, 100, 150, 180, 220, 250, 255};
  const auto after = [&](const TrivialChange& change) { return changed_grey(image, size, change); };
  CHECK(after({Op::brightness, 20}) == Bytes{0, 83, 166, 249, 255, 255, 255, 255});
  CHECK(after({Op::brightness, 20, true}) == Bytes{0, 16, 33, 50, 61, 74, 84, 86});
  CHECK(after({Op::contrast, 20}) == Bytes{0, 0, 66, 149, 199, 255, 255, 255});
  CHECK(after({Op::contrast, 20, true}) == Bytes{99, 116, 133, 150, 160, 174, 184, 186});
  CHECK(after({Op::saturation, 20}) == image);  // grey has none
  const Bytes colours = {200, 100, 50, 10, 250, 30};
  CHECK(changed(colours, {2, 1}, {Op::saturation, 20}) == Bytes{250, 84, 1, 0, 255, 0});
  CHECK(changed(colours, {2, 1}, {Op::saturation, 20, true}) == Bytes{149, 115, 98, 104, 185, 111});
}

TEST_CASE("trivial augment: sharpness leaves the border as it is") {
  const ImageSize size{4, 4};
  const Bytes image = {10, 10, 10, 10, 10, 200, 10, 10, 10, 10, 60, 10, 10, 10, 10, 10};
  CHECK(changed_grey(image, size, {Op::sharpness, 30}) ==
        Bytes{10, 10, 10, 10, 10, 255, 0, 10, 10, 0, 75, 10, 10, 10, 10, 10});
  CHECK(changed_grey(image, size, {Op::sharpness, 10, true}) ==
        Bytes{10, 10, 10, 10, 10, 162, 15, 10, 10, 15, 54, 10, 10, 10, 10, 10});
}

TEST_CASE("trivial augment: changes by table") {
  const ImageSize size{4, 2};
  const Bytes image = {0, 50, 100, 150, 180, 220, 250, 255};
  CHECK(changed_grey(image, size, {Op::posterize, 16}) == Bytes{0, 48, 96, 144, 176, 216, 248, 248});
  CHECK(changed_grey(image, size, {Op::solarize, 16}) == Bytes{0, 50, 100, 105, 75, 35, 5, 0});
  CHECK(changed_grey({20, 60, 100, 180}, {4, 1}, {Op::auto_contrast}) == Bytes{0, 63, 127, 255});
  CHECK(changed_grey(Bytes(8, 77), size, {Op::auto_contrast}) == Bytes(8, 77));
  CHECK(changed_grey(image, size, {Op::equalize}) == image);  // too few pixels to tell
  Bytes halves(510, 10), spread(510, 0);
  std::fill_n(halves.begin(), 255, std::uint8_t{20});
  std::fill_n(spread.begin(), 255, std::uint8_t{255});
  CHECK(changed_grey(halves, {51, 10}, {Op::equalize}) == spread);
}

TEST_CASE("trivial augment: no strength, no change") {
  const ImageSize size{9, 7};
  const Bytes image = formula_image(size);
  for (const TrivialChange& change : all_changes(Op::identity)) CHECK(changed(image, size, change) == image);
  for (const bool negative : {false, true})
    for (const Op op : {Op::shear_x, Op::shear_y, Op::translate_x, Op::translate_y, Op::rotate,
                        Op::brightness, Op::saturation, Op::contrast, Op::sharpness, Op::posterize}) {
      CAPTURE(static_cast<int>(op));
      CHECK(changed(image, size, {op, 0, negative}) == image);
    }
}

TEST_CASE("trivial augment: neighbours in the batch and what follows the copy stay untouched") {
  for (const ImageSize size : {ImageSize{7, 5}, {5, 7}, {2, 2}, {1, 1}}) {
    const Bytes image = formula_image(size);
    const std::size_t n = image.size();
    const auto at = static_cast<std::ptrdiff_t>(n);
    for (const Op op : all_ops())
      for (const TrivialChange& change : all_changes(op)) {
        Bytes slot(3 * n, 0xAB), copy(2 * n, 0xCD);
        std::copy(image.begin(), image.end(), slot.begin() + at);
        apply(change, slot.data() + n, size, {copy.data(), n});
        REQUIRE(std::count(slot.begin(), slot.begin() + at, 0xAB) == at);
        REQUIRE(std::count(slot.begin() + 2 * at, slot.end(), 0xAB) == at);
        REQUIRE(std::count(copy.begin() + at, copy.end(), 0xCD) == at);
        REQUIRE(Bytes(slot.begin() + at, slot.begin() + 2 * at) == changed(image, size, change));
      }
  }
}

TEST_CASE("trivial augment: a draw is op, bin and sign, and all of them come up") {
  std::set<int> seen;
  for (std::uint64_t index = 0; index < 10'000; ++index) {
    Random random(3, 1, index, Purpose::augment), again = random;
    const TrivialChange change = draw_trivial(random);
    REQUIRE(static_cast<std::uint32_t>(change.op) == again.below(14));
    REQUIRE(static_cast<std::uint32_t>(change.bin) == again.below(31));
    REQUIRE(change.negative == (again.below(2) == 1));
    REQUIRE(random.bits() == again.bits());  // nothing else was drawn
    seen.insert((static_cast<int>(change.op) * 31 + change.bin) * 2 + change.negative);
  }
  CHECK(seen.size() == 14 * 31 * 2);
}
