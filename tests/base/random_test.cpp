#include "base/random.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

using namespace sluice;

TEST_CASE("philox gives Random123's known answers") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) ==
        std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST_CASE("a stream depends on each part of its key and on nothing else") {
  const auto first = [](std::uint64_t seed, std::uint64_t epoch, std::uint64_t index, Purpose purpose) {
    return Random(seed, epoch, index, purpose).bits();
  };
  const std::uint32_t base = first(1, 2, 3, Purpose::crop);
  CHECK(base == first(1, 2, 3, Purpose::crop));
  CHECK(base != first(9, 2, 3, Purpose::crop));
  CHECK(base != first(1 | (1ull << 40), 2, 3, Purpose::crop));
  CHECK(base != first(1, 9, 3, Purpose::crop));
  CHECK(base != first(1, 2, 9, Purpose::crop));
  CHECK(base != first(1, 2, 3 | (1ull << 40), Purpose::crop));
  CHECK(base != first(1, 2, 3, Purpose::flip));
}

TEST_CASE("a long stream does not begin again, nor run into that of another purpose") {
  constexpr std::size_t once = std::size_t{1} << 18;
  Random random(3, 5, 7, Purpose::synth);
  const std::array<std::uint32_t, 4> head = {random.bits(), random.bits(), random.bits(), random.bits()};
  for (std::size_t i = 4; i < once; ++i) random.bits();
  for (int lap = 0; lap < 5; ++lap) {
    const std::array<std::uint32_t, 4> next = {random.bits(), random.bits(), random.bits(), random.bits()};
    CHECK(next != head);
    for (std::uint32_t purpose = 0; purpose < 256; ++purpose)
      CHECK(next[0] != Random(3, 5, 7, static_cast<Purpose>(purpose)).bits());
    for (std::size_t i = 4; i < once; ++i) random.bits();
  }
}

TEST_CASE("uniform fills [0, 1) evenly") {
  Random random(7, 0, 0, Purpose::augment);
  std::array<int, 16> bins{};
  double sum = 0;
  constexpr int draws = 64000;
  for (int i = 0; i < draws; ++i) {
    const double value = random.uniform();
    REQUIRE(value >= 0.0);
    REQUIRE(value < 1.0);
    sum += value;
    ++bins[static_cast<std::size_t>(value * 16)];
  }
  CHECK(std::abs(sum / draws - 0.5) < 0.005);
  for (const int count : bins) CHECK(std::abs(count - draws / 16) < 300);
}

TEST_CASE("below is within its bound and has no favourite") {
  Random random(11, 0, 0, Purpose::order);
  CHECK(random.below(1) == 0);
  std::array<int, 7> bins{};
  for (int i = 0; i < 70000; ++i) {
    const std::uint32_t value = random.below(7);
    REQUIRE(value < 7);
    ++bins[value];
  }
  for (const int count : bins) CHECK(std::abs(count - 10000) < 450);

  // 2^32 modulo 3 * 2^30 is 2^30: a plain modulo would give the lower third half of all draws.
  constexpr std::uint32_t bound = 3u << 30;
  int low = 0;
  for (int i = 0; i < 20000; ++i) low += random.below(bound) < bound / 3;
  CHECK(std::abs(low - 20000 / 3) < 400);
}
