#include "model/train/precision.hpp"

#include <doctest/doctest.h>

#include "tests/support/two_colours.hpp"

using namespace sluice;
using namespace sluice::test;

// Slow on processors without bf16.
TEST_SUITE("long") {
  TEST_CASE("precision: bf16 learns two colours on the CPU, and its weights stay float") {
    StepOptions options = tiny();
    options.precision = "bf16";
    auto step = Step::create(options);
    REQUIRE(step);
    const double first = train_once(*step, 0);
    double last = 0;
    for (int i = 1; i < 20; ++i) last = train_once(*step, i % 4);
    CHECK(first > 0.3);
    CHECK(last < 0.15);
    Snapshot snapshot;
    REQUIRE(step->snapshot(snapshot));
    for (const auto& tensor : snapshot.tensors)
      if (tensor.name.starts_with("momentum.")) CHECK(tensor.dtype == "f32");
  }
}
