#include "cli/bench/cpu_parts.hpp"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

// Of a machine that takes so many times as long in this round.
CpuRound round_at(double slowness) {
  return {1.1 * slowness, 0.1 * slowness, 1.0 * slowness, 0.8 * slowness};
}

}  // namespace

TEST_CASE("bench data: a machine that becomes slow or quick between rounds leaves no part below zero") {
  for (const auto& rounds : {std::vector{1.0, 1.0, 3.0, 3.0, 3.0}, std::vector{3.0, 3.0, 1.0, 1.0, 1.0},
                             std::vector{1.0, 2.0, 4.0, 8.0}, std::vector{5.0}}) {
    std::vector<CpuRound> measured;
    for (const double slowness : rounds) measured.push_back(round_at(slowness));
    const CpuParts parts = cpu_parts(measured);
    const double typical = median(rounds);
    CHECK(parts.whole == doctest::Approx(1.1 * typical));
    CHECK(parts.read == doctest::Approx(0.1 * typical));
    CHECK(parts.coding == doctest::Approx(0.7 * typical));
    CHECK(parts.resample == doctest::Approx(0.2 * typical));
    CHECK(parts.rest == doctest::Approx(0.1 * typical));
  }
}

TEST_CASE("bench data: a difference that is not above zero is noise") {
  const CpuParts parts = cpu_parts({{1.0, 0.1, 1.02, 0.9}, {1.0, 0.1, 1.01, 0.9}, {1.0, 0.1, 0.9, 0.9}});
  CHECK(part_text(parts.rest) == "within noise");
  CHECK(part_text(0) == "within noise");
  CHECK(part_text(parts.coding) == "0.800");
}
