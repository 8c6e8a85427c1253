#include "run/data/slow_storage.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace sluice;

TEST_CASE("slow storage: a shared bandwidth serves transfers one after the other") {
  SharedBandwidth b(10);  // MB/s: 100 ns a byte
  CHECK(b.through(1'000'000, 0) == 100'000'000);
  CHECK(b.through(1'000'000, 0) == 200'000'000);              // waits for the first
  CHECK(b.through(500'000, 150'000'000) == 250'000'000);      // and for the second
  CHECK(b.through(1'000'000, 900'000'000) == 1'000'000'000);  // nothing is saved up while idle
}

TEST_CASE("slow storage: outcomes and bytes go through as they are, and a stop ends the waits") {
  Stages stages;
  std::size_t taken = 0;
  stages.read = [](const Ticket& t, const TakeChunks& take, const Stop&) {
    return take(t.index).empty() ? Outcome::big() : Outcome{};
  };
  stages.lane = [](const Ticket&, const std::optional<Error>&, Slot&, const Stop&) { return Outcome{}; };
  std::vector<std::uint8_t*> chunks(1);
  const auto take = [&](std::size_t bytes) -> std::span<std::uint8_t* const> {
    taken = bytes;
    if (bytes > 1000) return {};
    return chunks;
  };
  Stop stop;
  stop.request();
  const Stages slow = slowed(stages, {.latency_ms = 3'600'000, .megabytes_per_s = 1e-9});
  Ticket t;
  t.index = 700;
  CHECK(slow.read(t, take, stop).kind == Outcome::Kind::done);
  CHECK(taken == 700);
  t.index = 2000;
  CHECK(slow.read(t, take, stop).kind == Outcome::Kind::big);
  Slot slot(1, 10);
  CHECK(slow.lane(t, {}, slot, stop).kind == Outcome::Kind::done);
}

TEST_CASE("slow storage: the latency is there") {
  Stages stages;
  stages.read = [](const Ticket&, const TakeChunks&, const Stop&) { return Outcome{}; };
  const Stages slow = slowed(stages, {.latency_ms = 30, .megabytes_per_s = 0});
  const Nanoseconds before = now_ns();
  (void)slow.read(
      {}, [](std::size_t) { return std::span<std::uint8_t* const>(); }, Stop());
  CHECK(now_ns() - before >= 30'000'000);
}
