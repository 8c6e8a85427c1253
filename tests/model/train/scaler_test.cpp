#include "model/train/scaler.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace sluice;

TEST_CASE("scaler: scaled and unscaled again is the same gradient") {
  Scaler scaler(at::kCPU);
  CHECK(scaler.scale(at::full({}, 2.0)).item<float>() == 131072.0f);
  const std::vector<at::Tensor> gradients{at::full({3}, 65536.0f), at::full({2, 2}, -32768.0f)};
  CHECK(scaler.unscale(gradients).item<float>() == 0.0f);
  CHECK(gradients[0].eq(1.0f).all().item<bool>());
  CHECK(gradients[1].eq(-0.5f).all().item<bool>());
}

TEST_CASE("scaler: an overflow halves the scale and is counted, a good step ends the row") {
  Scaler scaler(at::kCPU);
  const std::vector<at::Tensor> bad{at::ones({3}), at::full({2}, std::numeric_limits<float>::infinity())};
  for (int i = 1; i <= 3; ++i) {
    CHECK(scaler.unscale(bad).item<float>() == 1.0f);
    scaler.update();
    CHECK(scaler.scale().item<float>() == 65536.0f / static_cast<float>(1 << i));
    CHECK(scaler.skipped().item<float>() == static_cast<float>(i));
  }
  CHECK(scaler.unscale({at::ones({3})}).item<float>() == 0.0f);
  scaler.update();
  CHECK(scaler.scale().item<float>() == 8192.0f);
  CHECK(scaler.skipped().item<float>() == 0.0f);
  CHECK(scaler.good().item<int>() == 1);
}

TEST_CASE("scaler: 2000 good steps in a row double the scale") {
  Scaler scaler(at::kCPU);
  const std::vector<at::Tensor> gradients{at::zeros({1})};
  for (int i = 0; i < 1999; ++i) {
    scaler.unscale(gradients);
    scaler.update();
  }
  CHECK(scaler.scale().item<float>() == 65536.0f);
  scaler.unscale(gradients);
  scaler.update();
  CHECK(scaler.scale().item<float>() == 131072.0f);
  CHECK(scaler.good().item<int>() == 0);
}
