#include "model/train/mix.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

using namespace sluice;

namespace {

constexpr MixOptions both{0.2, 1.0, 1.0, 0.5};

std::map<Mix::Kind, int> kinds(const MixOptions& options, int batches) {
  std::map<Mix::Kind, int> seen;
  for (int i = 0; i < batches; ++i) ++seen[choose_mix(options, 42, static_cast<std::uint64_t>(i), 32).kind];
  return seen;
}

// The regularised incomplete beta function I(x; a, a) by adding up its density; good to three digits.
double beta_below(double x, double a) {
  // Substituting t = s^(1/a) takes the pole at 0 away: dt t^(a-1) = ds / a.
  const auto half = [&](double to) {
    const int parts = 20000;
    const double end = std::pow(to, a);
    double sum = 0;
    for (int i = 0; i < parts; ++i) {
      const double s = end * (i + 0.5) / parts;
      sum += std::pow(1 - std::pow(s, 1 / a), a - 1);
    }
    return sum * end / parts / a;
  };
  const double whole = 2 * half(0.5);
  return x <= 0.5 ? half(x) / whole : 1 - half(1 - x) / whole;
}

}  // namespace

TEST_CASE("mix: off by default, and the same for the same seed and batch") {
  CHECK(choose_mix({}, 1, 2, 32).kind == Mix::Kind::none);
  int other_batch = 0, other_seed = 0;
  for (std::uint64_t batch = 0; batch < 200; ++batch) {
    const Mix a = choose_mix(both, 7, batch, 224), b = choose_mix(both, 7, batch, 224);
    CHECK(a.kind == b.kind);
    CHECK(a.own == b.own);
    CHECK(a.box == b.box);
    other_batch += choose_mix(both, 7, batch + 1, 224).own != a.own;
    other_seed += choose_mix(both, 8, batch, 224).own != a.own;
  }
  CHECK(other_batch > 190);
  CHECK(other_seed > 190);
}

TEST_CASE("mix: one of the two per batch, in the shares that were asked for") {
  constexpr int n = 4000;
  const auto near = [](int seen, double share) {
    const double deviation = std::sqrt(n * share * (1 - share));
    CHECK(std::abs(seen - n * share) <= 5 * deviation);
  };
  std::map<Mix::Kind, int> seen = kinds(both, n);
  CHECK(seen[Mix::Kind::none] == 0);
  near(seen[Mix::Kind::cutmix], 0.5);
  seen = kinds({0.2, 1.0, 0.7, 0.25}, n);
  near(seen[Mix::Kind::none], 0.3);
  near(seen[Mix::Kind::cutmix], 0.7 * 0.25);
  CHECK(kinds({0.2, 0, 1, 0.5}, n)[Mix::Kind::mixup] == n);
  CHECK(kinds({0, 1, 1, 0.5}, n)[Mix::Kind::cutmix] == n);
}

TEST_CASE("mix: lambda follows Beta(alpha, alpha)") {
  for (const double alpha : {0.2, 0.5, 1.0, 4.0}) {
    CAPTURE(alpha);
    Random random(3, 0, 0, Purpose::mix);
    constexpr int n = 20000;
    std::vector<double> draws;
    for (int i = 0; i < n; ++i) draws.push_back(symmetric_beta(random, alpha));
    std::sort(draws.begin(), draws.end());
    CHECK(draws.front() >= 0);
    CHECK(draws.back() <= 1);
    // Kolmogorov and Smirnov: by chance the distance exceeds 1.95 / sqrt(n) once in a thousand times.
    double distance = 0;
    for (int i = 0; i < n; i += 400)
      distance = std::max(distance, std::abs(beta_below(draws[static_cast<std::size_t>(i)], alpha) -
                                             static_cast<double>(i) / n));
    CHECK(distance < 1.95 / std::sqrt(n) + 0.001);
  }
}

TEST_CASE("mix: mixup's weights add up to one and keep lambda") {
  for (std::uint64_t batch = 0; batch < 500; ++batch) {
    const Mix mix = choose_mix({0.2, 0, 1, 0.5}, 1, batch, 32);
    CHECK(mix.own >= 0);
    CHECK(mix.own <= 1);
    CHECK(mix.other == 1 - mix.own);
  }
}

TEST_CASE("mix: cutmix's weights are the share of the pixels, exactly, and its boxes stay inside") {
  int cut_off = 0, empty = 0;
  double area = 0;
  for (const int size : {32, 224, 7}) {
    for (std::uint64_t batch = 0; batch < 2000; ++batch) {
      const Mix mix = choose_mix({0, 1, 1, 0.5}, 1, batch, size);
      const Box& b = mix.box;
      REQUIRE(b.x >= 0);
      REQUIRE(b.y >= 0);
      REQUIRE(b.width >= 0);
      REQUIRE(b.height >= 0);
      REQUIRE(b.x + b.width <= size);
      REQUIRE(b.y + b.height <= size);
      int from_partner = 0;
      for (int y = 0; y < size; ++y)
        for (int x = 0; x < size; ++x)
          from_partner += x >= b.x && x < b.x + b.width && y >= b.y && y < b.y + b.height;
      const double all = static_cast<double>(size) * size;
      CHECK(mix.other == static_cast<float>(from_partner / all));
      CHECK(mix.own == static_cast<float>((all - from_partner) / all));
      cut_off += b.width != b.height;
      empty += b.width * b.height == 0;
      if (size == 224) area += mix.other / 2000.0;
    }
  }
  CHECK(cut_off > 1000);
  CHECK(empty > 0);
  // Uncut boxes would take E[1 - lambda] = 1/2; the edges take a part of that away.
  CHECK(area > 0.25);
  CHECK(area < 0.45);
}
