#include "graph/figures/storage.hpp"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

constexpr Nanoseconds ms = 1'000'000;

// Reads that begin while 1, 2, ... `most` are under way, then many with `most`; each takes what `time` says.
template <class Time>
StorageFigures reads(unsigned most, Time time, bool one_size = false) {
  StorageProfile profile;
  for (unsigned i = 1; i <= most + 200; ++i) {
    const unsigned at_once = std::min(i, most);
    const std::size_t bytes = one_size ? 110'000 : 60'000 + 1000 * (i * 37 % 101);
    profile.add(bytes, time(bytes, at_once), at_once);
  }
  return profile.figures();
}

}  // namespace

TEST_CASE("storage: each file takes its time, however many are read: latency") {
  CHECK_FALSE(bandwidth_bound(reads(16, [](std::size_t, unsigned) { return 84 * ms; })));
  CHECK_FALSE(bandwidth_bound(reads(256, [](std::size_t b, unsigned) {
    return 84 * ms + static_cast<Nanoseconds>(b) * 10;  // and 1 ms for its bytes
  })));
  CHECK_FALSE(bandwidth_bound(reads(1, [](std::size_t, unsigned) { return 84 * ms; })));
  CHECK_FALSE(bandwidth_bound({}));
}

TEST_CASE("storage: files that wait for each other: bandwidth") {
  // One after the other: own size hardly matters, the number before does.
  CHECK(bandwidth_bound(reads(16, [](std::size_t, unsigned n) { return n * 10 * ms; })));
  CHECK(bandwidth_bound(reads(
      16, [](std::size_t, unsigned n) { return n * 10 * ms; }, true)));
  CHECK(bandwidth_bound(reads(256, [](std::size_t, unsigned n) { return n * ms; })));
  // All at once, evenly: it is the bytes, as all that are seen had the same number beside them.
  CHECK(
      bandwidth_bound(reads(1, [](std::size_t b, unsigned) { return static_cast<Nanoseconds>(b) * 1600; })));
}

TEST_CASE("storage: the first files in the page cache say nothing about the others") {
  CHECK_FALSE(bandwidth_bound(reads(16, [](std::size_t, unsigned n) { return n < 4 ? ms / 10 : 84 * ms; })));
}

TEST_CASE("storage: a trial that brought nothing decides, and differences keep it") {
  StorageProfile profile;
  for (int i = 0; i < 100; ++i) profile.add(100'000, 84 * ms, 16);
  const StorageFigures before = profile.figures();
  CHECK_FALSE(bandwidth_bound(before));
  profile.add(50'000, 10 * ms, 16);
  profile.tried(false);
  const StorageFigures after = profile.figures().since(before);
  CHECK(bandwidth_bound(after));
  CHECK(after.files == 1);
  CHECK(after.bytes == 50'000);
  CHECK(after.seconds == doctest::Approx(0.010));
  profile.tried(true);
  CHECK_FALSE(bandwidth_bound(profile.figures()));
  StorageFigures shared = reads(16, [](std::size_t, unsigned n) { return n * 10 * ms; });
  shared.more_helps = true;  // such as a limit for each connection
  CHECK_FALSE(bandwidth_bound(shared));
}

TEST_CASE("storage: a read counts how many were under way when it began") {
  StorageProfile profile;
  {
    StorageProfile::Read first(profile), second(profile);
    first.done(10);
    second.done(10);
  }
  StorageProfile::Read third(profile);
  third.done(10);
  const StorageFigures f = profile.figures();
  CHECK(f.by_load[0].reads == 2);
  CHECK(f.by_load[1].reads == 1);
  CHECK(f.by_load[1].at_once == 2);
}
