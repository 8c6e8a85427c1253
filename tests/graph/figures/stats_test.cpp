#include "graph/figures/stats.hpp"

#include <doctest/doctest.h>

using namespace sluice;

TEST_CASE("stats: percentiles are within an eighth") {
  Histogram h;
  CHECK(h.percentile(0.5) == 0);
  for (Nanoseconds i = 1; i <= 10'000; ++i) h.add(i * 1000);
  CHECK(h.percentile(0.50) == doctest::Approx(5'000'000).epsilon(0.125));
  CHECK(h.percentile(0.99) == doctest::Approx(9'900'000).epsilon(0.125));
  Histogram one;
  one.add(123'456);
  CHECK(one.percentile(0.99) == doctest::Approx(123'456).epsilon(0.125));
}

TEST_CASE("stats: a node's time is busy, held up, or waiting for input") {
  NodeStats stats(NodeId::decode, 2);
  stats.arrive();
  stats.arrive();
  CHECK(stats.figures(1000).queued == 2);
  {
    const Serving serving(stats);
    CHECK(stats.figures(1000).queued == 1);
    CHECK(stats.figures(1000).active == 1);
  }
  stats.waited_for_bound(300);
  const Nanoseconds busy = stats.figures(0).busy;
  const NodeFigures f = stats.figures(busy + 1000);
  CHECK(f.items == 1);
  CHECK(f.active == 0);
  CHECK(f.wait_bound == 300);
  CHECK(f.wait_input == 2 * (busy + 1000) - busy - 300);  // two threads
}
