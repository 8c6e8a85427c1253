#include "run/train/interval.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace sluice;

namespace {

// The clock is the real one, so figures are checked against each other: a wait for the first batch moves the
// start back by exactly that much, and the seconds told are at least that.
constexpr Nanoseconds second = 1'000'000'000;

void check_consistent(const Interval::Figures& f, double images, double waited) {
  CHECK(f.images_per_s * f.seconds == doctest::Approx(images));
  CHECK(f.step_ms * static_cast<double>(f.batches) == doctest::Approx(f.batches ? 1e3 * f.seconds : 0));
  CHECK(f.data_wait * f.seconds == doctest::Approx(waited));
}

}  // namespace

TEST_CASE("interval: rates are what was counted over the time") {
  Interval interval;
  CHECK_FALSE(interval.started());
  interval.start();
  CHECK(interval.started());
  interval.waited(10 * second);
  interval.images(256);
  const Interval::Figures f = interval.whole();
  CHECK(f.seconds >= 10);
  CHECK(f.batches == 1);
  CHECK(f.data_wait <= 1);  // the wait for the first batch is part of the time
  check_consistent(f, 256, 10);
}

TEST_CASE("interval: a later wait lies within the time already") {
  Interval interval;
  interval.start();
  interval.waited(1000 * second);
  interval.images(256);
  interval.waited(500 * second);
  interval.images(128);
  const Interval::Figures f = interval.whole();
  // Were the start moved back again, it would be 1500 s; the test itself takes no 500 s.
  CHECK(f.seconds >= 1000);
  CHECK(f.seconds < 1500);
  CHECK(f.batches == 2);
  check_consistent(f, 384, 1500);
}

TEST_CASE("interval: since_last starts counting anew, whole does not") {
  Interval interval;
  interval.start();
  interval.waited(1000 * second);
  interval.images(256);
  const Interval::Figures first = interval.since_last();
  CHECK(first.seconds >= 1000);
  CHECK(first.batches == 1);
  check_consistent(first, 256, 1000);

  interval.images(64);
  const Interval::Figures next = interval.since_last();
  CHECK(next.seconds < 1000);
  CHECK(next.batches == 1);
  CHECK(next.data_wait == 0);
  CHECK(next.images_per_s * next.seconds == doctest::Approx(next.seconds > 0 ? 64 : 0));

  const Interval::Figures whole = interval.whole();
  CHECK(whole.seconds >= 1000);
  CHECK(whole.batches == 2);
  check_consistent(whole, 320, 1000);

  interval.start();  // the next phase
  CHECK(interval.whole().batches == 0);
  CHECK(interval.whole().seconds < 1000);
  CHECK(interval.whole().data_wait == 0);
}

TEST_CASE("interval: nothing counted, or no time gone by, gives zeros and no division by zero") {
  Interval interval;
  interval.start();
  for (const Interval::Figures& f : {interval.whole(), interval.since_last(), interval.since_last()}) {
    CHECK(std::isfinite(f.seconds));
    CHECK(f.batches == 0);
    CHECK(f.images_per_s == 0);
    CHECK(f.step_ms == 0);
    CHECK(f.data_wait == 0);
  }
  // A clock that has not come as far as the start yet.
  interval.start();
  interval.waited(-1000 * second);
  interval.images(256);
  const Interval::Figures f = interval.whole();
  CHECK(f.seconds <= 0);
  CHECK(f.batches == 1);
  CHECK(f.images_per_s == 0);
  CHECK(f.step_ms == 0);
  CHECK(f.data_wait == 0);
}
