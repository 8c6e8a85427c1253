#include "model/ranks/heartbeat.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>

#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

// A store in memory that can be gone, or keep its callers waiting.
struct FakeStore {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  bool gone = false, frozen = false;

  explicit FakeStore(int ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      values[beat_key(rank)] = no_beat, values[fail_key(rank)] = no_failure;
  }
  void thaw(bool now) {
    const std::lock_guard lock(mutex);
    frozen = !now;
    changed.notify_all();
  }
  Status enter(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [&] { return !frozen; });
    if (gone) return Error{"store", "", "connection reset", ""};
    return Done{};
  }
};

BeatStore over(const std::shared_ptr<FakeStore>& store) {
  return {[store](const std::string& key, const std::string& value) -> Status {
            std::unique_lock lock(store->mutex);
            const Status entered = store->enter(lock);
            if (entered) store->values[key] = value;
            return entered;
          },
          [store](const std::vector<std::string>& keys) -> Result<std::vector<std::string>> {
            std::unique_lock lock(store->mutex);
            if (const Status entered = store->enter(lock); !entered) return entered.error();
            std::vector<std::string> values;
            for (const auto& key : keys) values.push_back(store->values.at(key));
            return values;
          }};
}

const std::vector<std::string> hosts{"alpha", "beta", "gamma"};
constexpr auto limit = 6000ms, interval = 1000ms;

struct Three {
  std::shared_ptr<FakeStore> store = std::make_shared<FakeStore>(3);
  std::vector<std::unique_ptr<Heart>> hearts;
  Heart::Time now{};
  Three() {
    for (int rank = 0; rank < 3; ++rank)
      hearts.push_back(
          std::make_unique<Heart>(HeartOptions{rank, hosts, "rank 0 (alpha)", limit}, over(store)));
  }
  // One interval later the given ranks beat; what the first of them finds.
  std::optional<Error> beat(const std::vector<int>& ranks, std::chrono::milliseconds later = interval) {
    now += later;
    std::optional<Error> first;
    for (const int rank : ranks) {
      auto found = hearts[static_cast<std::size_t>(rank)]->beat(now);
      if (rank == ranks.front()) first = std::move(found);
    }
    return first;
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE(
    "heart: who keeps the store tells of a loss two beats after the others may know, and lives on until "
    "then") {
  Three three;
  three.hearts[0] =
      std::make_unique<Heart>(HeartOptions{0, hosts, "rank 0 (alpha)", limit, true}, over(three.store));
  three.beat({0, 1, 2});
  int keeper = 0, other = 0;
  for (int i = 1; i <= 20 && keeper == 0; ++i) {
    three.now += interval;
    if (three.hearts[0]->beat(three.now)) keeper = i;
    const auto found = three.hearts[1]->beat(three.now);
    if (found && other == 0) {
      other = i;
      CHECK(found->subject == "rank 2 (gamma)");
    }
  }
  REQUIRE(keeper > 0);
  REQUIRE(other > 0);
  CHECK(keeper == other + 2);
}

TEST_CASE("heart: with nobody else to tell it says so at once") {
  const auto store = std::make_shared<FakeStore>(2);
  Heart keeper({0, {"alpha", "beta"}, "rank 0 (alpha)", limit, true}, over(store));
  Heart::Time now{};
  int beats = 0;
  while (!keeper.beat(now += interval) && beats < 50) ++beats;
  CHECK(beats == 7);
}

TEST_CASE("heartbeat: ranks that beat are never lost") {
  Three all;
  for (int i = 0; i < 50; ++i)
    for (const auto& order : {std::vector{0, 1, 2}, std::vector{2, 0, 1}, std::vector{1, 2, 0}})
      REQUIRE(!all.beat(order));
}

TEST_CASE("heartbeat: a rank that falls silent is lost after the limit, and named with its host") {
  Three all;
  for (int i = 0; i < 5; ++i) REQUIRE(!all.beat({0, 1, 2}));
  REQUIRE(!all.beat({1, 0}));  // sees the last beat
  for (int i = 0; i < 6; ++i) REQUIRE(!all.beat({1, 0}));
  REQUIRE(!all.beat({1, 0}, 0ms));  // no time, no silence
  const auto found = all.beat({1, 0});
  REQUIRE(found);
  CHECK(found->subject == "rank 2 (gamma)");
  CHECK(has(found->cause, "6 s"));
}

TEST_CASE("heartbeat: a rank that never beat at all is lost as well") {
  Three all;
  for (int i = 0; i < 7; ++i) REQUIRE(!all.beat({1, 2}));
  CHECK(all.beat({1, 2})->subject == "rank 0 (alpha)");
}

TEST_CASE("heartbeat: silence while this rank itself was stopped blames nobody") {
  Three all;
  for (int i = 0; i < 3; ++i) REQUIRE(!all.beat({0, 1, 2}));
  // All three stand still for an hour; the first one to wake up sees the others' old beats.
  REQUIRE(!all.beat({0}, 3600s));
  CHECK(!all.hearts[0]->guard(all.now));
  REQUIRE(!all.beat({1, 2, 0}));
  REQUIRE(!all.beat({2, 1, 0}));
}

TEST_CASE("heartbeat: a failure is told at once, with its reason") {
  Three all;
  REQUIRE(!all.beat({0, 1, 2}));
  all.store->values[fail_key(1)] = "decode: x.jpg: not a JPEG";
  const auto found = all.beat({2, 0, 1});
  REQUIRE(found);
  CHECK(found->text() == "ranks: rank 1 (beta): failed: decode: x.jpg: not a JPEG");
  CHECK(all.store->values.contains(seen_key(2)));
  CHECK(all.store->values.contains(seen_key(0)));
  CHECK(!all.store->values.contains(seen_key(1)));  // it does not answer to its own
}

TEST_CASE("heartbeat: a store that is gone names its keeper") {
  Three all;
  REQUIRE(!all.beat({1}));
  all.store->gone = true;
  const auto found = all.beat({1});
  REQUIRE(found);
  CHECK(found->subject == "rank 0 (alpha)");
  CHECK(has(found->cause, "connection reset"));
}

TEST_CASE("heartbeat: the guard speaks when beats get no answer for longer than the limit") {
  Three all;
  Heart& heart = *all.hearts[1];
  REQUIRE(!all.beat({1}));
  REQUIRE(!heart.guard(all.now));  // an answer since the last look
  for (int i = 1; i <= 6; ++i) REQUIRE(!heart.guard(all.now + i * interval));
  REQUIRE(!all.beat({1}));  // a late answer
  REQUIRE(!heart.guard(all.now + 7 * interval));
  for (int i = 8; i <= 13; ++i) REQUIRE(!heart.guard(all.now + i * interval));
  const auto found = heart.guard(all.now + 14 * interval);
  REQUIRE(found);
  CHECK(found->subject == "rank 0 (alpha)");
  CHECK(has(found->cause, "not answered"));
}

TEST_CASE("heartbeat: with threads, a store that hangs is noticed, told once, and left behind") {
  const test::Watchdog watchdog("heartbeat");
  const auto store = std::make_shared<FakeStore>(2);
  std::atomic<int> calls = 0;
  {
    Heartbeat heartbeat({1, {"alpha", "beta"}, "rank 0 (alpha)", 60ms}, over(store));
    heartbeat.watch([&](const Error&) { ++calls; });
    store->thaw(false);
    const auto verdict = heartbeat.verdict(50s);
    REQUIRE(verdict);
    CHECK(verdict->subject == "rank 0 (alpha)");
    while (calls == 0) std::this_thread::sleep_for(1ms);
  }
  CHECK(calls == 1);
  store->thaw(true);  // the thread that was left behind ends
}

TEST_CASE("heartbeat: two with threads, one stops: the other is told of it, also when it asks late") {
  const test::Watchdog watchdog("heartbeat");
  const auto store = std::make_shared<FakeStore>(2);
  auto first =
      std::make_unique<Heartbeat>(HeartOptions{0, {"alpha", "beta"}, "rank 0 (alpha)", 300ms}, over(store));
  Heartbeat second({1, {"alpha", "beta"}, "rank 0 (alpha)", 300ms}, over(store));
  CHECK(!second.verdict(350ms));
  first.reset();
  REQUIRE(second.verdict(50s));
  std::promise<std::string> told;
  second.watch([&](const Error& error) { told.set_value(error.subject); });
  CHECK(told.get_future().get() == "rank 0 (alpha)");
  second.stop();
}

TEST_CASE(
    "heartbeat: many threads ask and set who is told while a rank is lost; all hear the same, one once") {
  const test::Watchdog watchdog("heartbeat");
  for (int round = 0; round < 3; ++round) {
    const auto store = std::make_shared<FakeStore>(2);
    auto first =
        std::make_unique<Heartbeat>(HeartOptions{0, {"alpha", "beta"}, "rank 0 (alpha)", 120ms}, over(store));
    std::atomic<int> told = 0, same = 0, asked = 0;
    {
      Heartbeat second({1, {"alpha", "beta"}, "rank 0 (alpha)", 120ms}, over(store));
      std::vector<std::jthread> threads;
      for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
          std::optional<Error> found;
          while (!(found = second.verdict(t == 0 ? 0ms : 1ms))) ++asked;
          same += found->subject == "rank 0 (alpha)";
        });
      threads.emplace_back([&] {
        while (!second.verdict()) second.watch(nullptr);
        second.watch([&](const Error& error) { told += error.subject == "rank 0 (alpha)"; });
      });
      while (asked < 100 && !second.verdict()) std::this_thread::yield();
      first.reset();
      threads.clear();
      while (told == 0) std::this_thread::yield();
      CHECK(same == 3);
    }
    CHECK(told == 1);
  }
}
