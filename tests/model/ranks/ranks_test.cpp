// Ranks as threads of one process: what they agree on, and what Step makes of it. As processes: tests/ranks.
#include "model/ranks/ranks.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>

#include "model/ranks/reduce_trace.hpp"
#include "model/train/train_step.hpp"

#include "tests/support/free_port.hpp"
#include "tests/support/stranger.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

RanksOptions options(int rank, int world, std::uint16_t port, std::chrono::milliseconds heartbeat = 60s) {
  RanksOptions o;
  o.seat.rank = o.seat.local_rank = rank;
  o.seat.world = o.seat.local_world = world;
  o.seat.port = port;
  o.timeout = 30s;
  o.heartbeat = heartbeat;
  return o;
}

// Runs `body` once per rank, each on a thread.
template <class Body>
void together(int world, std::chrono::milliseconds heartbeat, const Body& body) {
  const test::Watchdog watchdog("ranks");
  const std::uint16_t port = test::free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      auto joined = Ranks::join(options(rank, world, port, heartbeat));
      if (!joined)
        FAIL_CHECK(joined.error().text());
      else
        body(*joined, rank);
    });
  for (std::thread& thread : threads) thread.join();
}

struct Images {
  Images(int seed, int count, int side)
      : size(side), pixels(static_cast<std::size_t>(count * side * side * 3)) {
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<std::uint8_t>((i * 2654435761u + static_cast<unsigned>(seed) * 97u) >> 13);
    for (int i = 0; i < count; ++i) labels.push_back((i + seed) % 2);
  }
  DeviceBatch give() {
    return {pixels.data(), labels.data(), static_cast<int>(labels.size()), image_layout(size), [] {}, [] {}};
  }
  int size;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
};

StepOptions tiny(std::shared_ptr<Ranks> ranks) {
  StepOptions o;
  o.arch = "resnet18";
  o.classes = 2;
  o.batch = 4;
  o.task = image_classification(16);
  o.threads = 1;
  o.label_smoothing = 0.1;
  o.momentum = 0.9;
  o.weight_decay = 1e-4;
  o.decay_all = true;
  o.seed = 42;
  o.channels_last = true;
  o.ranks = std::move(ranks);
  return o;
}

using Kind = ReduceTrace::Event::Kind;

}  // namespace

TEST_CASE("ranks: agree on a value, meet, and exchange sums one call late") {
  together(3, 60s, [](const std::shared_ptr<Ranks>& ranks, int rank) {
    CHECK(*ranks->from_first("name", "value of " + std::to_string(rank)) == "value of 0");
    for (int i = 0; i < 2; ++i) CHECK(ranks->meet("gate"));
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t mine[] = {rank + i, 1};
      const auto sums = ranks->exchange(mine);
      REQUIRE(sums);
      CHECK(sums->at(0) == (i == 0 ? 0 : 3 + 3 * (i - 1)));
      CHECK(sums->at(1) == (i == 0 ? 0 : 3));
    }
    ranks->leave(20s);
    CHECK(!ranks->verdict(0ms));
  });
}

TEST_CASE("ranks: a failure reaches the others with its reason, and a meeting does not wait for it") {
  std::atomic<int> told = 0;
  together(2, 1200ms, [&](const std::shared_ptr<Ranks>& ranks, int rank) {
    if (rank == 0) return ranks->fail({"decode", "x.jpg", "not a JPEG", ""});
    ranks->watch([&](const Error& error) {
      ++told;
      CHECK(error.subject.starts_with("rank 0 ("));
    });
    const Status met = ranks->meet("never");
    REQUIRE(!met);
    CHECK(met.error().cause == "failed: decode: x.jpg: not a JPEG");
    while (told == 0) std::this_thread::sleep_for(1ms);
  });
  CHECK(told == 1);
}

TEST_CASE("ranks: who has the port and is no store is given up after the time for the whole rendezvous" *
          doctest::test_suite("long")) {
  using Manner = test::NoStore::Manner;
  for (const Manner manner : {Manner::silent, Manner::hanging_up, Manner::silent_later}) {
    CAPTURE(static_cast<int>(manner));
    const test::Watchdog watchdog("rendezvous");
    const test::NoStore peer(manner);
    RanksOptions o = options(1, 2, peer.port);
    o.timeout = 200ms;
    const auto joined = Ranks::join(o);
    CHECK(peer.visitors() > 0);
    REQUIRE(!joined);
    CHECK(joined.error().subject == "127.0.0.1:" + std::to_string(peer.port));
    CHECK(joined.error().cause.find("within 0.2 s") != std::string::npos);
  }
}

TEST_CASE("ranks: a rank whose peers do not come is told so after the same time") {
  const test::Watchdog watchdog("rendezvous");
  RanksOptions o = options(0, 3, test::free_port());
  o.timeout = 1s;
  const auto joined = Ranks::join(o);
  REQUIRE(!joined);
  CHECK(joined.error().text().starts_with("ranks: rank 1, 2: did not come within 1 s"));
}

TEST_CASE("ranks: what others tell is shown in one line, without control characters") {
  together(2, 6s, [&](const std::shared_ptr<Ranks>& ranks, int rank) {
    if (rank == 0) return ranks->fail({"decode", "a\nb\x1b[2J\xff.jpg", "not a JPEG", ""});
    const Status met = ranks->meet("never");
    REQUIRE(!met);
    const std::string& cause = met.error().cause;
    CHECK(cause.starts_with("failed: decode: a\\"));
    CHECK(cause.ends_with("b\\x1b[2J\\xff.jpg: not a JPEG"));
    CHECK(std::ranges::none_of(cause, [](char c) { return c == '\n' || c == '\x1b' || c == '\xff'; }));
  });
}

TEST_CASE("ranks: an abort ends an exchange that would wait for ever") {
  std::promise<void> over;
  const auto ended = over.get_future().share();
  together(2, 60s, [&](const std::shared_ptr<Ranks>& ranks, int rank) {
    const std::int64_t mine[] = {1};
    if (rank == 1) {  // never comes to the second one
      CHECK(ranks->exchange(mine));
      return ended.wait();
    }
    CHECK(ranks->exchange(mine));
    CHECK(ranks->exchange(mine));
    std::thread later([&] {
      std::this_thread::sleep_for(50ms);
      ranks->abort();
    });
    CHECK(!ranks->exchange(mine));
    later.join();
    over.set_value();
  });
}

TEST_CASE("ranks: gradients are summed in buckets while others are not ready yet, and once per step") {
  together(2, 60s, [](const std::shared_ptr<Ranks>& ranks, int rank) {
    StepOptions o = tiny(ranks);
    o.accumulate = 2;
    o.trace = std::make_shared<ReduceTrace>();
    auto step = Step::create(o);
    REQUIRE(step);
    std::size_t buckets = 0;
    for (int batch = 0; batch < 4; ++batch) {
      Images images(10 * batch + rank, o.batch, o.task.sample.width());
      REQUIRE(step->train(images.give(), 0.01));
      const auto events = o.trace->take();
      const auto count = [&](Kind kind) {
        return std::ranges::count_if(events, [&](const auto& e) { return e.kind == kind; });
      };
      CHECK(count(Kind::gradient) == 62);
      if (batch % 2 != 1) {
        CHECK(count(Kind::began) == 0);
        continue;
      }
      const auto at = [&](auto begin, auto end, Kind kind) {
        return std::find_if(begin, end, [&](const auto& e) { return e.kind == kind; });
      };
      const auto first = at(events.begin(), events.end(), Kind::began);
      REQUIRE(first != events.end());
      CHECK(std::count_if(first, events.end(), [](const auto& e) { return e.kind == Kind::gradient; }) > 30);
      CHECK(count(Kind::began) >= 2);
      CHECK(count(Kind::began) < 10);
      CHECK(count(Kind::began) == count(Kind::ended));
      buckets = static_cast<std::size_t>(count(Kind::began));
    }
    CHECK(buckets > 0);
    const auto sums = step->read_back();
    REQUIRE(sums);
    CHECK(sums->train.count == 2 * 4 * o.batch);
    ranks->leave(20s);
  });
}

TEST_CASE("ranks: weights, statistics and momenta come from rank 0") {
  std::array<Snapshot, 2> after, shared;
  together(2, 60s, [&](const std::shared_ptr<Ranks>& ranks, int rank) {
    StepOptions o = tiny(ranks);
    o.ema = 0.9;
    auto step = Step::create(o);
    REQUIRE(step);
    Images images(rank, o.batch, o.task.sample.width());
    REQUIRE(step->train(images.give(), 0.01));
    Snapshot& own = after[static_cast<std::size_t>(rank)];
    REQUIRE(step->snapshot(own));
    REQUIRE(step->eval(images.give()));  // agrees on the statistics
    REQUIRE(step->snapshot(shared[static_cast<std::size_t>(rank)]));
    const auto sums = step->read_back();
    REQUIRE(sums);
    CHECK(sums->eval.count == 2 * o.batch);
    CHECK(sums->ema.count == 2 * o.batch);
    if (rank == 0) {
      Snapshot other = own;
      std::ranges::fill(other.data, std::byte{0});
      REQUIRE(step->restore(other));
    }
    REQUIRE(step->share());
    Snapshot zero;
    REQUIRE(step->snapshot(zero));
    CHECK(std::ranges::all_of(zero.data, [](std::byte b) { return b == std::byte{0}; }));
    ranks->leave(20s);
  });
  CHECK(after[0].data != after[1].data);  // each norm has seen its own images
  CHECK(shared[0].data == shared[1].data);
  CHECK(shared[0].data == after[0].data);
}
