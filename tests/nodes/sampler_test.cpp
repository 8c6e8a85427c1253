#include "nodes/sampler.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <vector>

using namespace sluice;

namespace {

RunShape shape(std::uint64_t train, std::uint64_t val, std::uint32_t batch, std::uint32_t epochs) {
  RunShape s;
  s.train_images = train, s.val_images = val, s.batch = batch, s.epochs = epochs, s.seed = 7;
  return s;
}

std::vector<Ticket> all(const Sequence& sequence, std::uint64_t from = 0) {
  Sampler sampler(sequence, from);
  std::vector<Ticket> tickets;
  while (const auto t = sampler.next()) tickets.push_back(*t);
  return tickets;
}

}  // namespace

TEST_CASE("permutation: every place once, for any size") {
  for (const std::uint64_t n : {1, 2, 3, 5, 64, 65, 1000, 4097}) {
    CAPTURE(n);
    const Permutation order(n, 42, 3);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t at = order(i);
      REQUIRE(at < n);
      seen.insert(at);
    }
    CHECK(seen.size() == n);
  }
}

TEST_CASE("permutation: differs by seed and epoch, and looks shuffled") {
  constexpr std::uint64_t n = 10'000;
  const Permutation a(n, 1, 0), b(n, 1, 1), c(n, 2, 0);
  std::uint64_t same_ab = 0, same_ac = 0, ascending = 0;
  double distance = 0;
  for (std::uint64_t i = 0; i + 1 < n; ++i) {
    same_ab += a(i) == b(i);
    same_ac += a(i) == c(i);
    ascending += a(i) < a(i + 1);
    distance += std::abs(static_cast<double>(a(i)) - static_cast<double>(i));
  }
  CHECK(same_ab < 15);  // expected: 1
  CHECK(same_ac < 15);
  CHECK(ascending == doctest::Approx(n / 2.0).epsilon(0.05));
  CHECK(distance / n == doctest::Approx(n / 3.0).epsilon(0.05));
}

TEST_CASE("sequence: ImageNet's numbers") {
  const auto s = Sequence::make(shape(1'281'167, 50'000, 256, 90));
  REQUIRE(s);
  CHECK(s->steps_per_epoch() == 5004);
  CHECK(s->val_batches() == 196);
  CHECK(s->batches() == 90u * (5004 + 196));
  CHECK(Sequence::make(shape(1'281'167, 50'000, 384, 1))->steps_per_epoch() == 3336);
}

TEST_CASE("sequence: training, its validation, the next epoch; the last validation batch is short") {
  const auto s = Sequence::make(shape(10, 7, 3, 2));
  REQUIRE(s);
  CHECK(s->batches() == 2u * (3 + 3));
  const BatchPlan val = s->at(5), next = s->at(6);
  CHECK(val.split == Split::val);
  CHECK(val.places == 1);
  CHECK(val.last_of_phase());
  CHECK(val.step == 3);
  CHECK(next.split == Split::train);
  CHECK(next.epoch == 1);
  CHECK(next.step == 3);
  CHECK(next.in_phase == 0);
}

TEST_CASE("sequence: max_steps ends training there and validates once more") {
  RunShape r = shape(10, 7, 3, 100);
  r.max_steps = 5;
  const auto s = Sequence::make(r);
  REQUIRE(s);
  CHECK(s->batches() == 3 + 3 + 2 + 3);
  CHECK(s->at(7).split == Split::train);
  CHECK(s->at(7).last_of_phase());
  CHECK(s->at(8).split == Split::val);
  CHECK(s->at(8).step == 5);
  CHECK(s->at(10).last_of_phase());
  r.max_steps = 6;  // exactly two epochs
  CHECK(Sequence::make(r)->batches() == 12);
}

TEST_CASE("sequence: where a run goes on after so many steps") {
  const auto s = Sequence::make(shape(10, 7, 3, 3));  // three steps and three validation batches an epoch
  REQUIRE(s);
  for (std::uint64_t b = 0; b < s->batches(); ++b) {
    const BatchPlan plan = s->at(b);
    if (plan.split == Split::train)
      CHECK(s->after(plan.step + 1, false) == b + 1);
    else if (plan.last_of_phase())
      CHECK(s->after(plan.step, true) == b + 1);
    else
      CHECK(s->after(plan.step, false) == b - plan.in_phase);  // validation restarts from its beginning
  }
  CHECK(s->after(0, false) == 0u);
  CHECK_FALSE(s->after(10, false));

  // The same position in a run that was made longer or shorter.
  RunShape r = shape(10, 7, 3, 3);
  r.max_steps = 2;
  const auto two = Sequence::make(r);
  CHECK(two->after(2, false) == 2u);
  CHECK(two->after(2, true) == two->batches());
  CHECK(s->after(2, true) == 2u);  // extended: the third step comes next, not a second validation
  CHECK_FALSE(two->after(3, false));
}

TEST_CASE("sequence: a set smaller than a batch is refused") {
  const auto s = Sequence::make(shape(10, 7, 11, 1));
  REQUIRE_FALSE(s);
  CHECK(s.error().text() ==
        "sampler: train.batch = 11: the training set has only 10 images, less than one batch; lower "
        "train.batch");
}

TEST_CASE("sampler: each training image at most once an epoch, each validation image exactly once") {
  const auto s = Sequence::make(shape(100, 23, 8, 3));
  REQUIRE(s);
  std::map<std::pair<Split, std::uint32_t>, std::set<std::uint64_t>> seen;
  std::uint64_t count = 0;
  for (const Ticket& t : all(*s)) {
    CHECK(seen[{t.split, t.epoch}].insert(t.index).second);
    ++count;
  }
  CHECK(count == 3u * (96 + 23));
  CHECK(seen[{Split::val, 2}].size() == 23);
  CHECK(seen[{Split::train, 0}] != seen[{Split::train, 1}]);
}

TEST_CASE("sampler: entered anywhere, it gives what an uninterrupted one would") {
  const auto s = Sequence::make(shape(50, 11, 4, 3));
  REQUIRE(s);
  const auto whole = all(*s);
  for (std::uint64_t from = 0; from < s->batches(); ++from) {
    const auto rest = all(*s, from);
    REQUIRE_FALSE(rest.empty());
    const Ticket& there = whole[whole.size() - rest.size()];
    CHECK(there.batch == from);
    for (std::size_t i = 0; i < rest.size(); ++i)
      REQUIRE(rest[i].index == whole[whole.size() - rest.size() + i].index);
  }
}

TEST_CASE("sequence: accumulated batches make up whole optimiser steps") {
  RunShape r =
      shape(25, 4, 3, 2);  // eight batches, of which a step takes three: two steps, two batches dropped
  r.accumulate = 3;
  const auto s = Sequence::make(r);
  REQUIRE(s);
  CHECK(s->steps_per_epoch() == 2);
  CHECK(s->batches() == 2 * (6 + 2));
  std::uint64_t steps = 0;
  for (std::uint64_t b = 0; b < s->batches(); ++b) {
    const BatchPlan plan = s->at(b);
    CAPTURE(b);
    CHECK(plan.step == steps);
    if (plan.split == Split::val) {
      CHECK_FALSE(plan.ends_step);
      continue;
    }
    CHECK(plan.in_step == plan.in_phase % 3);
    CHECK(plan.ends_step == (plan.in_step == 2));
    if (plan.ends_step) CHECK(s->after(++steps, false) == b + 1);
  }
  CHECK(steps == 4);
  r.max_steps = 3;
  const auto three = Sequence::make(r);
  CHECK(three->batches() == 6 + 2 + 3 + 2);
  CHECK(three->at(10).last_of_phase());
  CHECK(three->after(3, true) == three->batches());
  r.accumulate = 9;
  CHECK(Sequence::make(r).error().text().find("less than one optimiser step") != std::string::npos);
}

TEST_CASE("sequence: training alone has no validation in between") {
  RunShape r = shape(10, 0, 3, 4);
  r.validate = false;
  const auto s = Sequence::make(r);
  REQUIRE(s);
  CHECK(s->batches() == 12);
  for (std::uint64_t b = 0; b < 12; ++b) {
    CHECK(s->at(b).split == Split::train);
    CHECK(s->at(b).epoch == b / 3);
    CHECK(s->at(b).step == b);
  }
}
