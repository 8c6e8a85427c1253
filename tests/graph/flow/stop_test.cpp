#include "graph/flow/stop.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "graph/flow/queue.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace std::chrono_literals;

TEST_CASE("stop: the first failure is the one reported, and only if nobody had asked to stop before") {
  Stop stop;
  int woken = 0;
  stop.on_stop([&] { ++woken; });
  stop.fail({"read", "a", "first", ""});
  stop.fail({"decode", "b", "second", ""});
  CHECK(stop.requested());
  CHECK(woken == 1);
  CHECK(stop.failure()->text() == "read: a: first");

  Stop asked;
  asked.request();
  asked.fail({"read", "a", "a consequence of stopping", ""});
  CHECK_FALSE(asked.failure());
}

TEST_CASE("stop: a pause ends with the stop") {
  const test::Watchdog dog("pause");
  Stop stop;
  CHECK(stop.pause(1ms));
  std::thread other([&] { stop.request(); });
  CHECK_FALSE(stop.pause(1h));
  CHECK_FALSE(stop.pause(1h));
  other.join();
}

TEST_CASE("queue: close wakes whoever waits for room or for an item") {
  const test::Watchdog dog("queue");
  BoundedQueue<int> full(1), empty(1);
  CHECK(full.push(1));
  bool pushed = true;
  std::optional<int> popped = 7;
  std::thread pusher([&] { pushed = full.push(2); }), popper([&] { popped = empty.pop(); });
  std::this_thread::sleep_for(5ms);
  full.close();
  empty.close();
  pusher.join();
  popper.join();
  CHECK_FALSE(pushed);
  CHECK_FALSE(popped);
  CHECK(full.size() == 1);
  full.clear();
  CHECK(full.size() == 0);
}

TEST_CASE("queue: keeps order and never holds more than its bound") {
  const test::Watchdog dog("queue order");
  BoundedQueue<int> queue(3);
  std::size_t most = 0;
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) queue.push(i);
  });
  for (int i = 0; i < 1000; ++i) {
    most = std::max(most, queue.size());
    CHECK(queue.pop() == i);
  }
  producer.join();
  CHECK(most <= 3);
}
