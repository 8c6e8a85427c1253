// Who outlives whom, when a session goes.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <condition_variable>
#include <mutex>

#include "base/process/left_behind.hpp"
#include "model/task.hpp"
#include "run/session/session.hpp"
#include "tests/support/fake_run.hpp"
#include "tests/support/recording_device.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

bool is_mapped(void* memory) { return msync(memory, 1, MS_ASYNC) == 0; }

Session::Watch quiet() {
  return {.signal = [] { return 0; }};
}

// Tells when the last copy of a function that holds it is gone.
std::shared_ptr<void> when_gone(std::function<void()> then) {
  return std::shared_ptr<void>(nullptr, [then = std::move(then)](void*) { then(); });
}

}  // namespace

TEST_CASE("session: slots are page-locked before the run and let go before they are unmapped") {
  const Watchdog dog("session, device");
  const auto device = std::make_shared<RecordingDevice>();
  FakeRun run;
  run.place_bytes = 32 * 32 * 3;
  std::vector<bool> mapped;
  device->on_unpin = [&](void* memory) { mapped.push_back(is_mapped(memory)); };
  Stages stages = run.stages();
  stages.step = [&](Batch& batch) -> Status {
    CHECK(device->pinned == 2);
    device->run_all();  // the copies that are under way
    OnDevice& on_device = DeviceFeed::of(batch);
    on_device.batch.wait();
    Ticket first;
    first.batch = batch.number;
    first.epoch = static_cast<std::uint32_t>(batch.number / run.per_epoch());
    CHECK(on_device.batch.samples[1] == FakeRun::pixel(first, 1));
    on_device.batch.release();
    run.stepped.push_back(batch.number);
    return Done{};
  };
  {
    Session session(run.options(), std::move(stages),
                    std::make_unique<DeviceFeed>(
                        [&]() -> Result<std::shared_ptr<Device>> { return std::shared_ptr<Device>(device); },
                        run.batch, image_layout(32)));
    const Ending ending = session.run(quiet());
    INFO((ending.failure ? ending.failure->text() : ""));
    CHECK(ending.kind == Ending::Kind::finished);
    CHECK(run.stepped.size() == run.batches());
    CHECK(mapped.empty());
  }
  CHECK(mapped == std::vector<bool>{true, true});
  CHECK(device->pinned == 0);
  CHECK(device->errors().empty());
}

TEST_CASE("session: the log's thread may stop the run until it has ended, also where the run never began") {
  const Watchdog dog("session, late log");
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> order;
  const auto note = [&](const char* what) {
    const std::lock_guard lock(mutex);
    order.emplace_back(what);
    changed.notify_all();
  };
  FakeRun run;
  Stages stages = run.stages();
  stages.tell = [gone = when_gone([&] { note("graph gone"); })](const std::string&) {};
  {
    Session session(run.options(), std::move(stages));
    // In the middle of stopping the run, the log's thread waits for the graph to go: it must not.
    session.stop().on_stop([&] {
      note("stopping");
      {
        std::unique_lock lock(mutex);
        (void)changed.wait_for(lock, std::chrono::milliseconds(300),
                               [&] { return order.back() == "graph gone"; });
      }
      note("stopped");
    });
    LogOptions options;
    options.metrics = [](std::string_view) -> Status { return Error{"log", "", "no room", ""}; };
    Log& log = session.open_log(std::move(options));
    log.put({"train", 0, 1, {}, {}});
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !order.empty(); });
  }  // as after a device that cannot be had
  CHECK(order == std::vector<std::string>{"stopping", "stopped", "graph gone"});
}

TEST_CASE("session: a read that never comes back leaves what it may touch, and the process leaves by _exit") {
  const Watchdog dog("session, stuck read");
  static std::atomic<bool> let_go{false}, graph_gone{false};
  static std::atomic<int> entered{0}, left{0};
  auto run = std::make_shared<FakeRun>();
  run->epochs = 1000;
  run->on_read = [](const Ticket& t) {
    if (t.index == 9) {
      ++entered;
      while (!let_go) nap(1000);
      ++left;
    }
    if (t.index != 12) return;
    while (entered == 0) nap(1000);
    throw std::runtime_error("dead");
  };
  Stages stages = run->stages();
  stages.name = [run, gone = when_gone([] { graph_gone = true; })](const Ticket& t) {
    return "file-" + std::to_string(t.index);
  };
  std::vector<Slot*> slots;
  {
    Session session(run->options(), std::move(stages));
    run.reset();  // the graph has it
    slots = session.pipeline().slots();
    CHECK_FALSE(thread_left_behind());
    const Ending ending = session.run(quiet());
    CHECK(ending.abandoned);
    CHECK(ending.kind == Ending::Kind::failed);
    CHECK(ending.failure->text() == "read: file-12: dead");
    CHECK(ending.code() == 1);
    CHECK(thread_left_behind());  // main leaves by _exit, whatever the command does now
  }
  CHECK_FALSE(graph_gone);
  for (Slot* slot : slots) CHECK(is_mapped(slot->memory().data()));
  let_go = true;
  while (left == 0) nap(1000);
  nap(20'000);  // the thread finds its request gone; what it looked at was there
  CHECK_FALSE(graph_gone);
}
