#include "run/train/agreement.hpp"

#include <doctest/doctest.h>

#include <csignal>

#include "tests/support/fake_ranks.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

// 8 training batches of 2 images on each rank, then the validation.
Sequence sequence(int rank, int ranks, std::uint64_t val_images = 0, std::uint32_t accumulate = 1) {
  RunShape shape;
  shape.batch = 2;
  shape.rank = static_cast<std::uint32_t>(rank);
  shape.ranks = static_cast<std::uint32_t>(ranks);
  shape.train_images = shape.global_batch() * 8;
  shape.val_images = val_images;
  shape.accumulate = accumulate;
  shape.validate = val_images > 0;
  return *Sequence::make(shape);
}

std::vector<Bad> some(int count) {
  std::vector<Bad> bad;
  for (int i = 0; i < count; ++i) bad.push_back({static_cast<std::uint32_t>(i), "a.jpg", "empty file", ""});
  return bad;
}

Agreement::Options options(const Sequence& sequence, Exchange exchange) {
  return {.sequence = sequence,
          .exchange = std::move(exchange),
          .signal = [] { return 0; },
          .save_wished = [] { return false; }};
}

BadImages list_of(const TemporaryFolder& folder, int rank, double max_bad = 1) {
  return {folder / quarantine_name(rank), max_bad};
}

// At which batch each rank stops, and by which signal, where `sent` tells what a rank is sent at a batch.
struct Stopped {
  std::uint64_t batch = 0;
  int signal = 0;
  bool operator==(const Stopped&) const = default;
};
std::vector<Stopped> stops(int count, const std::function<int(int rank, std::uint64_t batch)>& sent) {
  const TemporaryFolder folder;
  FakeRanks ranks(count);
  std::vector<Stopped> all(static_cast<std::size_t>(count));
  ranks.run([&](int rank) {
    const Sequence order = sequence(rank, count);
    std::uint64_t batch = 0;
    Agreement::Options o = options(order, ranks.of(rank));
    o.signal = [&] { return sent(rank, batch); };
    Agreement agreement(o, list_of(folder, rank));
    for (; batch < order.batches(); ++batch) {
      if (!agreement.meet(order.at(batch), {}) || agreement.stop_signal() != 0) break;
      if (!agreement.list(order.at(batch), {})) break;
    }
    all[static_cast<std::size_t>(rank)] = {batch, agreement.stop_signal()};
  });
  return all;
}

}  // namespace

TEST_CASE("agreement: a signal at one rank stops all at the same batch") {
  const Watchdog watchdog("agreement");
  for (int count = 2; count <= 4; ++count)
    for (int which = 0; which < count; ++which)
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        const auto stopped = stops(
            count, [&](int rank, std::uint64_t batch) { return rank == which && batch >= 3 ? signal : 0; });
        CHECK(stopped == std::vector<Stopped>(static_cast<std::size_t>(count), {4, signal}));
      }
  CHECK(stops(3, [](int, std::uint64_t) { return 0; }) == std::vector<Stopped>(3, {8, 0}));
}

TEST_CASE("agreement: of several signals all take the same one, and the first that was heard stays") {
  const Watchdog watchdog("agreement");
  const std::array at_once = {SIGINT, SIGTERM, SIGHUP};
  CHECK(stops(3, [&](int rank, std::uint64_t batch) {
          return batch >= 2 ? at_once[static_cast<std::size_t>(rank)] : 0;
        }) == std::vector<Stopped>(3, {3, SIGTERM}));
  CHECK(stops(2, [](int rank, std::uint64_t batch) {
          return batch >= 2 ? (rank == 0 ? SIGINT : SIGHUP) : 0;
        }) == std::vector<Stopped>(2, {3, SIGHUP}));
}

TEST_CASE("agreement: rank 0's clock lets all save at the same batch, once") {
  const Watchdog watchdog("agreement");
  const TemporaryFolder folder;
  FakeRanks ranks(3);
  std::vector<std::vector<std::uint64_t>> saves(3);
  ranks.run([&](int rank) {
    const Sequence order = sequence(rank, 3);
    std::uint64_t batch = 0;
    bool wished = false, saved = false;
    Agreement::Options o = options(order, ranks.of(rank));
    o.save_wished = [&] { return wished = rank == 0 && batch >= 2 && !saved; };
    Agreement agreement(o, list_of(folder, rank));
    for (; batch < order.batches(); ++batch) {
      if (!agreement.meet(order.at(batch), {}) || !agreement.list(order.at(batch), {})) break;
      agreement.reach();
      if (!agreement.save_due()) continue;
      if (!agreement.settle()) break;
      agreement.saved();
      saved = true;
      saves[static_cast<std::size_t>(rank)].push_back(batch);
    }
  });
  for (const auto& at : saves) CHECK(at == std::vector<std::uint64_t>{3});
}

TEST_CASE("agreement: bad images of all ranks are counted together, and each lists its own") {
  const Watchdog watchdog("agreement");
  const TemporaryFolder folder;
  FakeRanks ranks(4);
  std::vector<BadCounts> at_position(4), settled(4);
  ranks.run([&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const Sequence order = sequence(rank, 4, 0, 2);  // every second batch ends a step
    Agreement agreement(options(order, ranks.of(rank)), list_of(folder, rank));
    for (std::uint64_t batch = 0; batch < 4; ++batch) {
      const std::vector<Bad> bad = some(rank == 0 || batch == 2 ? 0 : 1);
      if (!agreement.meet(order.at(batch), bad) || !agreement.list(order.at(batch), bad)) return;
      if (order.at(batch).ends_step) agreement.reach();
      if (batch == 2) at_position[r] = agreement.settled();  // after the step that ended with batch 1
    }
    if (agreement.settle()) settled[r] = agreement.settled();
  });
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    CAPTURE(rank);
    CHECK(at_position[rank] == BadCounts{.in_phase = 6, .lines = rank == 0 ? 0u : 2u});
    CHECK(settled[rank] == BadCounts{.in_phase = 9, .lines = rank == 0 ? 0u : 3u});
  }
}

TEST_CASE("agreement: too many bad images end all ranks at the same batch") {
  const Watchdog watchdog("agreement");
  const TemporaryFolder folder;
  FakeRanks ranks(2);
  std::vector<std::uint64_t> ended(2);
  std::vector<std::string> why(2);
  ranks.run([&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const Sequence order = sequence(rank, 2);  // 32 images in all
    Agreement agreement(options(order, ranks.of(rank)), list_of(folder, rank, 0.1));
    for (; ended[r] < order.batches(); ++ended[r]) {
      const std::vector<Bad> bad = some(rank == 1 && ended[r] % 2 == 0 ? 2 : 0);
      Status met = agreement.meet(order.at(ended[r]), bad);
      if (met) met = agreement.list(order.at(ended[r]), bad);
      if (met) continue;
      why[r] = met.error().text();
      break;
    }
  });
  CHECK(ended == std::vector<std::uint64_t>{3, 3});  // heard of with the batch after the second two
  for (const std::string& text : why) CHECK(text.find("4 of 32 train images") != std::string::npos);
}

TEST_CASE("agreement: bad images of a validation batch that only one rank has are told in the end") {
  const Watchdog watchdog("agreement");
  const TemporaryFolder folder;
  FakeRanks ranks(2);
  std::vector<std::uint64_t> batches(2);
  std::vector<BadCounts> before(2), settled(2);
  ranks.run([&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const Sequence order = sequence(rank, 2, 5);  // of validation, rank 0 has 3 images and rank 1 has 2
    Agreement agreement(options(order, ranks.of(rank)), list_of(folder, rank));
    for (std::uint64_t batch = 8; batch < order.batches(); ++batch, ++batches[r])
      if (!agreement.meet(order.at(batch), some(1)) || !agreement.list(order.at(batch), some(1))) return;
    before[r] = agreement.settled();
    agreement.reach();
    if (agreement.settle()) settled[r] = agreement.settled();
  });
  REQUIRE(batches == std::vector<std::uint64_t>{2, 1});
  CHECK(before == std::vector<BadCounts>(2));  // a validation under way is no position
  CHECK(settled == std::vector<BadCounts>{{.in_phase = 3, .lines = 2}, {.in_phase = 3, .lines = 1}});
}

TEST_CASE("agreement: a rank that is lost is told by the others, at their next batch") {
  const Watchdog watchdog("agreement");
  const TemporaryFolder folder;
  FakeRanks ranks(3);
  std::vector<std::string> why(3);
  ranks.run([&](int rank) {
    const Sequence order = sequence(rank, 3);
    Agreement agreement(options(order, ranks.of(rank)), list_of(folder, rank));
    for (std::uint64_t batch = 0; batch < order.batches(); ++batch) {
      if (rank == 2 && batch == 4) return ranks.lose(2);
      const Status met = agreement.meet(order.at(batch), {});
      if (met) continue;
      why[static_cast<std::size_t>(rank)] = std::to_string(batch) + " " + met.error().subject;
      return;
    }
  });
  CHECK(why == std::vector<std::string>{"5 rank 2", "5 rank 2", ""});
}

TEST_CASE("agreement: nothing is told of a batch after it was forgotten") {
  const TemporaryFolder folder;
  int calls = 0;
  const Sequence order = sequence(0, 2);
  Agreement agreement(options(order,
                              [&](std::span<const std::int64_t> mine) {
                                ++calls;
                                return std::vector<std::int64_t>(mine.begin(), mine.end());
                              }),
                      list_of(folder, 0));
  REQUIRE(agreement.meet(order.at(0), some(1)));
  agreement.forget();
  REQUIRE(agreement.settle());
  CHECK(calls == 1);
  CHECK(agreement.settled() == BadCounts{});
}

TEST_CASE("agreement: one that is alone counts at once, and leaves signals to others") {
  const TemporaryFolder folder;
  const Sequence order = sequence(0, 1);  // 16 images
  Agreement::Options o = options(order, {});
  bool wished = false;
  o.signal = [] { return SIGTERM; };
  o.save_wished = [&] { return wished; };
  Agreement agreement(o, list_of(folder, 0, 0.2));
  CHECK(agreement.alone());
  REQUIRE(agreement.meet(order.at(0), some(2)));
  CHECK(agreement.stop_signal() == 0);
  REQUIRE(agreement.list(order.at(0), some(2)));
  CHECK(agreement.settled() == BadCounts{});
  agreement.reach();
  REQUIRE(agreement.settle());
  CHECK(agreement.settled() == BadCounts{.in_phase = 2, .lines = 2});
  CHECK_FALSE(agreement.save_due());
  wished = true;
  CHECK(agreement.save_due());
  REQUIRE(agreement.meet(order.at(1), some(2)));
  CHECK_FALSE(agreement.list(order.at(1), some(2)));
  agreement.reach();
  CHECK(agreement.settled() == BadCounts{.in_phase = 2, .lines = 2});  // to be noted again
}
