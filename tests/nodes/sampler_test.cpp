#include "nodes/sampler.hpp"

#include <doctest/doctest.h>

#include <algorithm>
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

namespace {

// One rank's own view of a run on several.
Sequence of_rank(RunShape r, std::uint32_t rank, std::uint32_t ranks) {
  r.rank = rank, r.ranks = ranks;
  const auto s = Sequence::make(r);
  REQUIRE(s);
  return *s;
}

// The images of each training batch of all ranks, side by side.
std::map<std::uint64_t, std::vector<std::uint64_t>> global_batches(const RunShape& r, std::uint32_t ranks) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> batches;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Sequence s = of_rank(r, rank, ranks);
    const std::uint64_t each = s.steps_per_epoch() * r.accumulate;
    for (const Ticket& t : all(s))
      if (t.split == Split::train) batches[t.epoch * each + s.at(t.batch).in_phase].push_back(t.index);
  }
  return batches;
}

}  // namespace

TEST_CASE("sampler: the same global batch holds the same images in the same places on any number of ranks") {
  for (const std::uint32_t accumulate : {1u, 3u}) {
    RunShape r = shape(200, 31, 16, 2);
    r.accumulate = accumulate;
    const auto alone = global_batches(r, 1);
    CHECK(alone.size() == 24);  // 12 of each epoch
    for (const std::uint32_t ranks : {2u, 4u, 8u, 16u}) {
      CAPTURE(ranks);
      r.batch = 16 / ranks;
      CHECK(global_batches(r, ranks) == alone);
    }
  }
}

TEST_CASE("sampler: the ranks' pieces of the validation set hold each image once") {
  for (const std::uint64_t images : {7u, 8u, 23u, 24u, 25u})
    for (const std::uint32_t ranks : {1u, 2u, 3u, 5u, 7u}) {
      CAPTURE(images);
      CAPTURE(ranks);
      std::vector<std::uint64_t> seen;
      std::uint64_t fewest = images, most = 0, fewest_batches = images;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const Sequence s = of_rank(shape(100, images, 4, 1), rank, ranks);
        fewest = std::min(fewest, s.val_images());
        most = std::max(most, s.val_images());
        fewest_batches = std::min(fewest_batches, s.val_batches());
        for (const Ticket& t : all(s))
          if (t.split == Split::val) seen.push_back(t.index);
      }
      CHECK(most - fewest <= 1);
      CHECK(of_rank(shape(100, images, 4, 1), 0, ranks).common_val_batches() == fewest_batches);
      REQUIRE(seen.size() == images);
      for (std::uint64_t i = 0; i < images; ++i) CHECK(seen[i] == i);
    }
}

TEST_CASE("sequence: the position after so many steps means the same on every rank") {
  const RunShape r = shape(40, 9, 4, 3);  // of two ranks one has two validation batches, the other one
  const Sequence alone = of_rank(shape(40, 9, 8, 3), 0, 1);
  for (const std::uint32_t rank : {0u, 1u}) {
    const Sequence s = of_rank(r, rank, 2);
    CHECK(s.steps_per_epoch() == alone.steps_per_epoch());
    CHECK(s.val_batches() == (rank == 0 ? 2 : 1));
    for (std::uint64_t steps = 0; steps < 15; ++steps) {
      const auto next = s.after(steps, true);
      REQUIRE(next);
      CHECK(s.at(*next).step == steps);
      CHECK(s.at(*next).split == Split::train);
    }
  }
}

TEST_CASE("sequence: sets too small for the ranks are refused") {
  RunShape r = shape(10, 7, 6, 1);
  r.ranks = 2;
  CHECK(
      Sequence::make(r).error().text() ==
      "sampler: train.batch = 6 on 2 ranks: the training set has only 10 images, less than one batch; lower "
      "train.batch");
  r.batch = 1;
  r.ranks = 8;
  CHECK(Sequence::make(r).error().text() ==
        "sampler: data.val: the validation set has 7 images, less than one for each of 8 ranks; use fewer "
        "ranks");
}
