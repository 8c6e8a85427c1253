// Waiting for the log: what sync() promises, and that nothing makes it wait for ever.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "nodes/log.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

// Sinks that count what was written and how much of it is on the disk.
struct Counts {
  std::atomic<int> written = 0, on_disk = 0, syncs = 0;
  std::chrono::microseconds slow{0};
  LogOptions options(std::size_t capacity) {
    return {.capacity = capacity,
            .metrics = [this](std::string_view) -> Status {
              std::this_thread::sleep_for(slow);
              return ++written, Done{};
            },
            .sync = [this]() -> Status { return ++syncs, on_disk = written.load(), Done{}; }};
  }
};

Record numbered(std::int64_t step) { return {.event = "train", .step = step}; }

}  // namespace

TEST_CASE("sync waits for a slow sink, and for the disk") {
  const test::Watchdog watchdog("sync with a slow sink");
  Counts counts{.slow = 500us};
  Log log(counts.options(64));
  for (int i = 0; i < 20; ++i) log.put(numbered(i));
  CHECK(log.sync());
  CHECK(counts.on_disk == 20);
  CHECK(log.sync());  // nothing new: the disk is left alone
  CHECK(counts.syncs == 1);
  log.put(numbered(20));
  CHECK(log.close());  // closing leaves nothing behind either
  CHECK(counts.on_disk == 21);
  CHECK(log.sync());
  CHECK(counts.syncs == 2);
}

TEST_CASE("sync does not wait for what is put after it") {
  const test::Watchdog watchdog("sync in a stream that never ends");
  std::atomic<Log*> feed = nullptr;  // each record brings the next one: the queue is never empty
  Log log({.capacity = 4, .metrics = [&](std::string_view) -> Status {
             if (Log* to = feed) to->put(numbered(0));
             return Done{};
           }});
  feed = &log;
  for (int i = 0; i < 3; ++i) {
    log.put(numbered(0));
    CHECK(log.sync());
  }
  feed = nullptr;
  CHECK(log.close());
}

TEST_CASE("many threads put and sync at once, through a queue that is nearly always full") {
  const test::Watchdog watchdog("many syncs");
  Counts counts{.slow = 20us};
  std::atomic<int> put = 0, short_of = 0;
  Log log(counts.options(2));
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 60; ++i) {
          log.put(numbered(i));
          const int before = ++put;
          if (!log.sync() || counts.on_disk < before) ++short_of;
        }
      });
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 300; ++i) log.put(numbered(i)), ++put;
      });
  }
  CHECK(short_of == 0);
  CHECK(log.close());
  CHECK(counts.on_disk == 6 * 60 + 2 * 300);
}

TEST_CASE("a failing sink fails sync; it does not hang") {
  const test::Watchdog watchdog("sync with a failing sink");
  std::atomic<int> told = 0;
  const auto broken = [](const char* cause) { return Error{"log", "metrics.jsonl", cause, ""}; };
  LogOptions options{.capacity = 1, .on_error = [&](const Error&) { ++told; }};
  SUBCASE("metrics") {
    options.metrics = [&](std::string_view) -> Status { return broken("first"); };
    options.sync = [&]() -> Status { return broken("second"); };
  }
  SUBCASE("the disk") {
    options.sync = [&]() -> Status { return broken("first"); };
  }
  SUBCASE("events") {
    options.events = [&](const Record&) -> Status { return broken("first"); };
  }
  Log log(std::move(options));
  for (int i = 0; i < 3; ++i) {
    log.put(numbered(i));
    const Status synced = log.sync();
    REQUIRE_FALSE(synced);
    CHECK(synced.error().cause == "first");
  }
  CHECK_FALSE(log.close());
  CHECK_FALSE(log.sync());
  CHECK(told == 1);
}

TEST_CASE("sync while the log is closed: either way, the records are on the disk") {
  const test::Watchdog watchdog("sync against close");
  for (int round = 0; round < 50; ++round) {
    Counts counts{.slow = 10us};
    Log log(counts.options(8));
    for (int i = 0; i < 8; ++i) log.put(numbered(i));
    std::atomic<int> good = 0;
    std::vector<std::jthread> waiters;
    for (int t = 0; t < 3; ++t) waiters.emplace_back([&] { good += log.sync() && counts.on_disk == 8; });
    CHECK(log.close());
    waiters.clear();
    CHECK(good == 3);
  }
}

TEST_CASE("sync on the log's own thread gives up instead of waiting for itself") {
  const test::Watchdog watchdog("sync on the log's own thread");
  Log* self = nullptr;
  bool gave_up = false, told = false;
  Log log({.metrics = [&](std::string_view) -> Status {
             gave_up = !self->sync();
             return Error{"log", "metrics.jsonl", "disk full", ""};
           },
           .on_error = [&](const Error&) { told = self->sync().error().cause == "disk full"; }});
  self = &log;
  log.put(numbered(0));
  CHECK_FALSE(log.sync());
  CHECK(gave_up);
  CHECK(told);
}

TEST_CASE("what on_error says at the very end is still written") {
  const test::Watchdog watchdog("an error at the end");
  Log* self = nullptr;
  std::vector<std::string> text;
  Log log({.text = [&](std::string_view line) -> Status { return text.emplace_back(line), Done{}; },
           .sync = []() -> Status {
             return Error{"log", "metrics.jsonl", "disk gone", ""};
           },
           .on_error = [&](const Error& error) { self->message(Level::error, error.text()); }});
  self = &log;
  log.put(numbered(0));
  CHECK_FALSE(log.close());
  CHECK_FALSE(log.sync());
  REQUIRE(text.size() == 1);
  CHECK(text[0].ends_with("error: log: metrics.jsonl: disk gone"));
}

TEST_CASE("each record goes to the events too, after the metrics") {
  std::vector<std::string> calls;
  Log log({.metrics = [&](std::string_view) -> Status { return calls.emplace_back("metrics"), Done{}; },
           .events = [&](const Record& r) -> Status {
             return calls.push_back("events " + std::to_string(r.step)), Done{};
           }});
  log.put(numbered(7));
  log.message(Level::info, "no record");
  log.put(numbered(8));
  CHECK(log.sync());
  CHECK(calls == std::vector<std::string>{"metrics", "events 7", "metrics", "events 8"});
}

TEST_CASE("a real file is brought to the disk, and what has no disk is no error") {
  const test::TemporaryFolder folder;
  for (const std::string& path : {(folder / "metrics.jsonl").string(), std::string("/dev/null")}) {
    CAPTURE(path);
    auto file = open_lines(path);
    REQUIRE(file);
    Log log({.metrics = lines_into(*file), .sync = [file = *file] { return file->sync(); }});
    log.put(numbered(1));
    CHECK(log.sync());
    CHECK(log.close());
  }
  CHECK(test::read_text(folder / "metrics.jsonl") == "{\"event\":\"train\",\"epoch\":0,\"step\":1}\n");
}
