#include "nodes/image/crop.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace sluice;

namespace {

constexpr Range scale{0.08, 1.0}, ratio{3.0 / 4.0, 4.0 / 3.0};

bool inside(const Box& box, ImageSize size) {
  return box.x >= 0 && box.y >= 0 && box.width >= 1 && box.height >= 1 && box.x + box.width <= size.width &&
         box.y + box.height <= size.height;
}

}  // namespace

TEST_CASE("train views lie inside images of any shape and fill the output") {
  for (const ImageSize size : std::vector<ImageSize>{
           {1, 1}, {1, 500}, {500, 1}, {2, 3}, {20000, 30}, {30, 20000}, {100, 80}, {65500, 65500}})
    for (std::uint64_t i = 0; i < 200; ++i) {
      Random random(1, 0, i, Purpose::crop);
      const View view = train_view(size, 224, scale, ratio, random);
      CAPTURE(size.width);
      CAPTURE(size.height);
      REQUIRE(inside(view.region, size));
      REQUIRE(view.to == ImageSize{224, 224});
      REQUIRE(view.window == Box{0, 0, 224, 224});
    }
}

TEST_CASE("a shape that never fits falls back to the central part with the nearest ratio") {
  Random random(1, 0, 0, Purpose::crop);
  CHECK(train_view({4000, 30}, 224, {0.9, 1.0}, ratio, random).region == Box{1980, 0, 40, 30});
  CHECK(train_view({30, 4000}, 224, {0.9, 1.0}, ratio, random).region == Box{0, 1980, 30, 40});
  CHECK(train_view({1, 90}, 224, {1.0, 1.0}, {2.9, 3.0}, random).region == Box{0, 44, 1, 1});
  // The whole image when its own ratio is allowed but nothing as large fits in another shape.
  CHECK(train_view({100, 100}, 224, {1.0, 1.0}, {1.2, 1.3}, random).region.width == 100);
}

TEST_CASE("train views are spread as RandomResizedCrop's are") {
  const ImageSize size{600, 500};
  double area = 0, log_aspect = 0, x_share = 0;
  int small = 0, x_count = 0;
  constexpr int draws = 20000;
  for (std::uint64_t i = 0; i < draws; ++i) {
    Random random(5, 1, i, Purpose::crop);
    const Box box = train_view(size, 224, scale, ratio, random).region;
    const double share = static_cast<double>(box.width) * box.height / (600.0 * 500.0);
    area += share;
    small += share < 0.3;
    log_aspect += std::log(static_cast<double>(box.width) / box.height);
    if (box.width < 600) {
      x_share += static_cast<double>(box.x) / (600 - box.width);
      ++x_count;
    }
  }
  // Reference: 200,000 draws of torchvision's arithmetic on a 600 x 500 image.
  CHECK(area / draws == doctest::Approx(0.4628).epsilon(0.015));
  CHECK(static_cast<double>(small) / draws == doctest::Approx(0.2940).epsilon(0.05));
  CHECK(std::abs(log_aspect / draws - 0.0249) < 0.006);
  CHECK(x_share / x_count == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("eval views are Resize and CenterCrop") {
  CHECK(eval_view({500, 375}, 256, 224) == View{{0, 0, 500, 375}, {341, 256}, {58, 16, 224, 224}});
  CHECK(eval_view({375, 500}, 256, 224) == View{{0, 0, 375, 500}, {256, 341}, {16, 58, 224, 224}});
  CHECK(eval_view({300, 300}, 256, 224).to == ImageSize{256, 256});
  CHECK(eval_view({1, 1}, 256, 224) == View{{0, 0, 1, 1}, {256, 256}, {16, 16, 224, 224}});
}

TEST_CASE("half a pixel is rounded to even, as Python does") {
  CHECK(eval_view({225, 225}, 225, 224).window.x == 0);  // 0.5
  CHECK(eval_view({227, 227}, 227, 224).window.x == 2);  // 1.5
  CHECK(eval_view({229, 229}, 229, 224).window.x == 2);  // 2.5
}

TEST_CASE("eval windows stay inside even if resize is below the output size") {
  for (const ImageSize size :
       std::vector<ImageSize>{{1, 1}, {1, 65500}, {65500, 1}, {200, 100}, {640, 480}}) {
    const View view = eval_view(size, 100, 224);
    CHECK(inside(view.window, view.to));
    CHECK(view.window.width == 224);
  }
}
