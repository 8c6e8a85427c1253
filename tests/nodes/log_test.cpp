#include "nodes/log.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <sstream>
#include <thread>

#include "tests/support/folder.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

LineSink into(std::vector<std::string>& lines) {
  return [&lines](std::string_view line) -> Status { return lines.emplace_back(line), Done{}; };
}

Record numbered(std::int64_t step) { return {.event = "train", .step = step}; }

std::int64_t field(std::string_view line, std::string_view key) {
  return std::stoll(std::string(line.substr(line.find(key) + key.size() + 2)));
}
std::int64_t step_of(std::string_view line) { return field(line, "step"); }

// Waits for something that must come; the test fails rather than hangs.
bool soon(const std::function<bool()>& there) {
  for (int i = 0; i < 5000 && !there(); ++i) std::this_thread::sleep_for(1ms);
  return there();
}

}  // namespace

TEST_CASE("a slow sink makes put wait, and nothing is lost") {
  std::vector<std::string> lines;
  std::counting_semaphore<> gate(0);
  Log log({.capacity = 4, .metrics = [&](std::string_view line) -> Status {
             gate.acquire();
             return lines.emplace_back(line), Done{};
           }});
  std::atomic<int> accepted = 0;
  std::jthread writer([&] {
    for (int i = 0; i < 100; ++i) log.put(numbered(i)), ++accepted;
  });
  // One record is in the sink's hands, four in the queue: the sixth waits.
  REQUIRE(soon([&] { return accepted == 5; }));
  std::this_thread::sleep_for(20ms);
  CHECK(accepted == 5);
  gate.release(100);
  writer.join();
  CHECK(log.waited() > 0ns);
  CHECK(log.close());
  REQUIRE(lines.size() == 100);
  for (std::size_t i = 0; i < 100; ++i) CHECK(step_of(lines[i]) == static_cast<std::int64_t>(i));
}

TEST_CASE("a fast sink keeps nobody waiting") {
  std::vector<std::string> lines;
  Log log({.capacity = 64, .metrics = into(lines)});
  for (int i = 0; i < 64; ++i) log.put(numbered(i));
  CHECK(log.waited() == 0ns);
  CHECK(log.close());
  CHECK(lines.size() == 64);
}

TEST_CASE("many writers at once: all arrive, each in its own order") {
  std::vector<std::string> lines;
  Log log({.capacity = 3, .metrics = into(lines)});
  {
    std::vector<std::jthread> writers;
    for (int w = 0; w < 4; ++w)
      writers.emplace_back([&log, w] {
        for (int i = 0; i < 200; ++i) log.put({.event = "train", .epoch = w, .step = i});
      });
  }
  CHECK(log.close());
  REQUIRE(lines.size() == 800);
  std::array<std::int64_t, 4> next{};
  for (const std::string& line : lines) {
    CHECK(step_of(line) == next[static_cast<std::size_t>(field(line, "epoch"))]++);
  }
}

TEST_CASE("records, messages and progress from many threads, and a close among them") {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> lines, text;
    std::ostringstream screen;
    std::atomic<int> put = 0, said = 0;
    std::atomic<bool> closed = false;
    Log log({.screen = &screen,
             .terminal = true,
             .capacity = 3,
             .redraw = 1ms,
             .plain = 1ms,
             .metrics = into(lines),
             .text = into(text),
             .sync = []() -> Status { return Done{}; }});
    std::vector<std::jthread> threads;
    for (int w = 0; w < 2; ++w)
      threads.emplace_back([&, w] {
        for (int i = 0; !closed; ++i) log.put({.event = "train", .epoch = w, .step = i}), ++put;
      });
    threads.emplace_back([&] {
      for (int i = 0; !closed; ++i) log.message(Level::info, "message " + std::to_string(i)), ++said;
    });
    threads.emplace_back([&] {
      for (int i = 0; !closed; ++i) {
        log.progress({.label = "Epoch 0", .done = i, .total = 1 << 30});
        if (i % 8 == 0) log.finish({.label = "Epoch 0", .done = i, .total = 1 << 30});
        (void)log.sync(1ms);
      }
    });
    threads.emplace_back([&] {
      while (!closed) {
        CHECK(log.waiting() <= 3);
        CHECK(log.waited() >= 0ns);
      }
    });
    REQUIRE(soon([&] { return put > 20 && said > 10; }));
    CHECK(log.close());
    closed = true;
    threads.clear();
    CHECK(lines.size() > 20);
    std::array<std::int64_t, 2> next{};
    for (const std::string& line : lines)
      CHECK(step_of(line) == next[static_cast<std::size_t>(field(line, "epoch"))]++);
    std::int64_t message = 0;
    for (const std::string& line : text)
      if (const auto at = line.find("message "); at != std::string::npos)
        CHECK(line.substr(at) == "message " + std::to_string(message++));
    CHECK(message > 10);
  }
}

TEST_CASE("progress never waits, and only the newest state counts") {
  std::vector<std::string> text;
  std::counting_semaphore<> gate(0), inside(0);
  Log log({.capacity = 1,
           .plain = 1ms,
           .metrics = [&](std::string_view) -> Status {
             inside.release();
             gate.acquire();
             return Done{};
           },
           .text = into(text)});
  log.put(numbered(0));
  inside.acquire();  // the log's thread is now stuck in the sink
  for (int i = 1; i <= 1000; ++i) log.progress({.label = "Epoch 0", .done = i, .total = 2000});
  gate.release();
  CHECK(log.close());
  REQUIRE(text.size() == 1);
  CHECK(text[0].find("epoch 0 step 1000/2000") != std::string::npos);
}

TEST_CASE("without a terminal: plain lines, messages and ends of phases, in order, no control characters") {
  std::vector<std::string> text;
  std::ostringstream screen;
  Log log({.screen = &screen, .plain = 1h, .text = into(text)});
  log.progress({.label = "Epoch 0", .done = 1, .total = 3});
  log.message(Level::info, "first");
  log.message(Level::warning, "second");
  log.finish({.label = "Epoch 0", .done = 3, .total = 3, .elapsed = 6});
  log.message(Level::error, "third");
  CHECK(log.close());
  CHECK(screen.str() == "first\nwarning: second\nepoch 0 step 3/3 elapsed 00:06 left 00:00\nerror: third\n");
  REQUIRE(text.size() == 4);
  std::string digits = text[1];
  std::ranges::replace_if(
      digits, [](char c) { return c >= '0' && c <= '9'; }, '9');
  CHECK(digits == "9999-99-99 99:99:99 warning: second");
}

TEST_CASE("plain lines come at their interval, and only when there is news") {
  std::atomic<int> count = 0;
  Log log({.plain = 5ms, .text = [&](std::string_view) -> Status { return ++count, Done{}; }});
  log.progress({.label = "Epoch 0", .done = 1, .total = 3});
  REQUIRE(soon([&] { return count == 1; }));
  std::this_thread::sleep_for(30ms);
  CHECK(count == 1);
  log.progress({.label = "Epoch 0", .done = 2, .total = 3});
  CHECK(soon([&] { return count == 2; }));
}

TEST_CASE("on a terminal, messages do not garble the progress line") {
  std::ostringstream screen;
  std::atomic<int> drawn = 0;
  Log log({.screen = &screen, .terminal = true, .width = [&] { return ++drawn, 60; }, .redraw = 1h});
  const Progress one{.label = "Epoch 0", .done = 1, .total = 4, .elapsed = 1};
  const Progress four{.label = "Epoch 0", .done = 4, .total = 4, .elapsed = 4};
  log.progress(one);
  REQUIRE(soon([&] { return drawn == 1; }));  // the next redraw would be an hour away
  log.message(Level::warning, "slow disk");
  REQUIRE(soon([&] { return drawn == 2; }));
  log.finish(four);
  log.message(Level::info, "done");
  CHECK(log.close());
  const std::string bar = std::string("\r").append(progress_line(one, 59)) + "\x1b[K";
  CHECK(screen.str() ==
        bar + "\r\x1b[Kwarning: slow disk\n" + bar + "\r" + progress_line(four, 59) + "\x1b[K\ndone\n");
}

TEST_CASE("a terminal is redrawn at most at its interval") {
  std::ostringstream screen;
  Log log({.screen = &screen, .terminal = true, .redraw = 20ms});
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    log.progress({.label = "Epoch 0", .done = i, .total = 100});
    std::this_thread::sleep_for(1ms);
  }
  CHECK(log.close());
  const auto drawn = std::ranges::count(screen.str(), '\r');
  CHECK(drawn >= 2);
  CHECK(drawn <= (std::chrono::steady_clock::now() - start) / 20ms + 2);
}

TEST_CASE("the first write error is told once, at once and at the end, and no record comes after the gap") {
  std::vector<std::string> lines;
  std::ostringstream screen;
  int told = 0;
  Log* self = nullptr;
  Log log({.screen = &screen,
           .capacity = 1,
           .metrics = [&](std::string_view line) -> Status {
             if (step_of(line) < 2)
               return Error{"log", "metrics.jsonl", "disk full " + std::to_string(step_of(line)), ""};
             return lines.emplace_back(line), Done{};
           },
           .on_error =
               [&](const Error& error) {
                 ++told;
                 self->message(Level::error,
                               error.text());  // the queue may be full: must not wait for itself
               }});
  self = &log;
  for (int i = 0; i < 5; ++i) log.put(numbered(i));
  const Status closed = log.close();
  REQUIRE_FALSE(closed);
  CHECK(closed.error().cause == "disk full 0");
  CHECK(told == 1);
  CHECK(lines.empty());
  CHECK(screen.str() == "error: log: metrics.jsonl: disk full 0\n");
}

TEST_CASE("closing twice, and putting after closing, is harmless") {
  std::vector<std::string> lines;
  Log log({.metrics = into(lines)});
  log.put(numbered(1));
  CHECK(log.close());
  log.put(numbered(2));
  CHECK(log.close());
  CHECK(lines.size() == 1);
}

TEST_CASE("into files: metrics.jsonl and train.log") {
  const test::TemporaryFolder folder;
  auto metrics = append_to((folder / "metrics.jsonl").string()),
       text = append_to((folder / "train.log").string());
  REQUIRE(metrics);
  REQUIRE(text);
  {
    Log log({.metrics = *metrics, .text = *text});
    log.put(numbered(1));
    log.message(Level::info, "hello");
  }
  CHECK(test::read_text(folder / "metrics.jsonl") == "{\"event\":\"train\",\"epoch\":0,\"step\":1}\n");
  CHECK(test::read_text(folder / "train.log").ends_with(" hello\n"));
  const auto none = append_to((folder / "nowhere" / "metrics.jsonl").string());
  REQUIRE_FALSE(none);
  CHECK(none.error().subject == (folder / "nowhere" / "metrics.jsonl").string());
}

TEST_CASE("append file: one that was removed, replaced or cut is noticed") {
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const auto why = [](const AppendFile& file) {
    const Status there = file.still_there();
    return there ? std::string() : there.error().text();
  };
  const auto open = [&] {
    test::write_file(path, "old\ntorn");
    auto file = open_lines(path);
    REQUIRE(file);
    REQUIRE((*file)->append("new\n"));
    CHECK(why(**file) == "");
    return *file;
  };
  auto file = open();
  fs::rename(path, folder / "moved");
  CHECK(why(*file) ==
        "log: " + path + ": was removed or renamed during the run; look who has changed the run's folder");
  fs::rename(folder / "moved", path);
  CHECK(why(*file) == "");
  test::write_file(folder / "other", "old\nnew\n");
  fs::rename(folder / "other", path);
  CHECK(why(*file).find("was replaced by another file") != std::string::npos);
  file = open();
  fs::resize_file(path, 7);
  CHECK(why(*file).find("was cut during the run") != std::string::npos);
  file = open();
  fs::remove_all(folder.path());
  CHECK(why(*file).find("was removed or renamed") != std::string::npos);
  const auto device = AppendFile::open("/dev/null");
  REQUIRE(device);
  REQUIRE((*device)->append("x"));
  CHECK(why(**device) == "");
}
