#include "cli/doctor/images.hpp"

#include <doctest/doctest.h>

#include "tests/support/image_counts.hpp"

using namespace sluice;
using test::counts;

TEST_CASE("doctor, images: few bad ones warn, many fail, each split by itself") {
  using Verdict = Checklist::Verdict;
  const auto verdict = [](const ImageSamples& samples) {
    Checklist list;
    look_at_images(list, samples, 0.01);
    CHECK(list.lines().back().found.find("96 images (64 training, 32 validation)") != std::string::npos);
    return list.lines().back().verdict;
  };
  CHECK(verdict({counts(64, 0, 1000), counts(32, 0, 1000)}) == Verdict::ok);
  CHECK(verdict({counts(64, 1, 1000), counts(32, 0, 1000)}) == Verdict::warning);
  CHECK(verdict({counts(64, 9, 1000), counts(32, 0, 1000)}) == Verdict::fail);
  CHECK(verdict({counts(64, 0, 1000), counts(32, 1, 32)}) == Verdict::fail);
}
