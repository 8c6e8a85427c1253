#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "model/device/upload_ring.hpp"

#include "model/task.hpp"
#include "tests/support/recording_device.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using test::RecordingDevice;

namespace {

constexpr int images = 4, side = 6;
constexpr std::size_t values = std::size_t{images} * side * side * 3;
constexpr Affine plain{{1, 1, 1}, {0, 0, 0}};

// One slot of the host's. It is filled with other numbers the moment it is released, as the data path does.
struct HostSlot {
  HostBatch give(int number, int count = images) {
    std::fill(pixels.begin(), pixels.end(), static_cast<std::uint8_t>(number));
    free = false;
    return {pixels.data(), labels.data(), count, image_layout(side), [this] {
              std::fill(pixels.begin(), pixels.end(), std::uint8_t{0xEE});
              ++released;
              free = true;
            }};
  }
  std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(values);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(images);
  std::atomic<bool> free{true};
  std::atomic<int> released{0};
};

struct Trial {
  std::vector<std::string> errors;
  int wrong_batches = 0, synchronised = 0, allocations = 0;
};

// As the program does, on one thread: upload is up to two batches ahead of the step. Between the calls the
// device gets on by `speed` pieces of work.
Trial train(int batches, int speed, const RecordingDevice::Faults& faults = {}) {
  auto device = std::make_shared<RecordingDevice>();
  device->faults = faults;
  Trial trial;
  {
    auto upload = Upload::create(device, {images, image_layout(side), 3});
    REQUIRE(upload);
    std::deque<HostSlot> host(static_cast<std::size_t>(batches));
    std::deque<DeviceBatch> ahead;
    std::vector<std::vector<float>> outputs(static_cast<std::size_t>(batches), std::vector<float>(values));
    int queued = 0;
    const auto consume = [&] {
      DeviceBatch batch = std::move(ahead.front());
      ahead.pop_front();
      batch.wait();
      const auto number = static_cast<std::size_t>(queued++);
      CHECK(device->convert({batch.samples, outputs[number].data(), Output::fp32, images, side, plain, {}}));
      batch.release();
      for (int i = 0; i < speed; ++i) device->run_one();
    };
    for (int i = 0; i < batches; ++i) {
      auto put = upload->put(host[static_cast<std::size_t>(i)].give(i + 1));
      REQUIRE(put);
      ahead.push_back(std::move(*put));
      if (ahead.size() == 3) consume();
    }
    while (!ahead.empty()) consume();
    trial.synchronised = device->synchronised;
    device->run_all();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(host[i].released == 1);
      trial.wrong_batches +=
          std::ranges::any_of(outputs[i], [&](float v) { return v != static_cast<float>(i + 1); });
    }
    trial.allocations = device->allocations;
  }
  trial.errors = device->errors();
  return trial;
}

}  // namespace

TEST_CASE("upload ring: each batch arrives whole however late the queues are, and nothing synchronises") {
  for (const int speed : {0, 1, 3, 5, 8, 100}) {
    CAPTURE(speed);
    const Trial trial = train(20, speed);
    CHECK(trial.errors.empty());
    CHECK(trial.wrong_batches == 0);
    CHECK(trial.synchronised == 0);
    CHECK(trial.allocations == 6);  // pixels and labels of three slots, once
  }
}

TEST_CASE("upload ring: the recording device notices what a ring could forget") {
  RecordingDevice::Faults faults;
  SUBCASE("to wait for the network before it overwrites a slot") {
    faults.no_wait_before_copy = true;
    for (const int speed : {0, 100}) CHECK_FALSE(train(20, speed, faults).errors.empty());
  }
  SUBCASE("to tell when the network is done with a slot") {
    faults.no_consumed = true;
    for (const int speed : {0, 100}) CHECK_FALSE(train(20, speed, faults).errors.empty());
  }
  SUBCASE("to wait for the copy before it reads") {
    faults.no_wait_before_compute = true;
    for (const int speed : {0, 100}) CHECK_FALSE(train(20, speed, faults).errors.empty());
  }
  SUBCASE("to tell when a copy is done") {
    faults.no_copied = true;
    for (const int speed : {0, 100}) CHECK_FALSE(train(20, speed, faults).errors.empty());
  }
  SUBCASE("to keep the host's slot until the copy is done") {
    faults.tells_host_at_once = true;
    CHECK(train(20, 0, faults).wrong_batches > 0);
  }
}

TEST_CASE("upload ring: a full ring makes put wait, and stop ends the wait") {
  const test::Watchdog watchdog("upload ring");
  auto device = std::make_shared<RecordingDevice>();
  std::deque<HostSlot> host(4);  // outlives the copies from it
  auto upload = Upload::create(device, {images, image_layout(side), 2});
  REQUIRE(upload);
  std::vector<DeviceBatch> taken;
  for (std::size_t i = 0; i < 2; ++i) {
    auto put = upload->put(host[i].give(1));
    REQUIRE(put);
    taken.push_back(std::move(*put));
  }
  std::atomic<bool> third = false;
  std::thread putting([&] {
    auto put = upload->put(host[2].give(3));
    third = true;
    if (put) put->release();
    CHECK_FALSE(upload->put(host[3].give(4)));
    CHECK(host[3].released == 1);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(third);
  // The slots are used in turn: the second one does not help.
  taken[1].release();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(third);
  upload->stop();
  putting.join();
  CHECK(third);
  CHECK(host[2].released == 1);
  taken[0].release();
}

TEST_CASE("upload ring: a copy that fails gives both slots back, after what was queued before it") {
  auto device = std::make_shared<RecordingDevice>();
  auto upload = Upload::create(device, {images, image_layout(side), 2});
  REQUIRE(upload);
  for (int i = 0; i < 6; ++i) {
    device->faults.fail_copy = device->copies + 1;  // the labels
    HostSlot host;
    const auto put = upload->put(host.give(1));
    REQUIRE_FALSE(put);
    CHECK(put.error().cause == "the copy failed");
    CHECK(host.released == 1);
  }
  CHECK(device->synchronised == 6);
  HostSlot host;
  CHECK_FALSE(upload->put(host.give(1, images + 1)));
  CHECK(host.released == 1);
}

TEST_CASE("upload ring: upload, step and device on threads of their own") {
  const test::Watchdog watchdog("upload ring");
  constexpr int batches = 300;
  auto device = std::make_shared<RecordingDevice>();
  std::vector<std::vector<float>> outputs(batches, std::vector<float>(values));
  {
    auto upload = Upload::create(device, {images, image_layout(side), 3});
    REQUIRE(upload);
    std::deque<HostSlot> host(4);
    std::mutex mutex;
    std::deque<DeviceBatch> ahead;
    std::atomic<bool> over = false;
    std::thread works([&] {
      while (!over)
        if (!device->run_one()) std::this_thread::yield();
    });
    std::thread uploads([&] {
      for (int i = 0; i < batches; ++i) {
        HostSlot& slot = host[static_cast<std::size_t>(i) % host.size()];
        while (!slot.free) std::this_thread::yield();
        auto put = upload->put(slot.give(i % 200));
        if (!put) break;
        const std::lock_guard lock(mutex);
        ahead.push_back(std::move(*put));
      }
    });
    for (std::size_t i = 0; i < outputs.size();) {
      std::optional<DeviceBatch> batch;
      {
        const std::lock_guard lock(mutex);
        if (!ahead.empty()) batch = std::move(ahead.front()), ahead.pop_front();
      }
      if (!batch) {
        std::this_thread::yield();
        continue;
      }
      batch->wait();
      (void)device->convert({batch->samples, outputs[i++].data(), Output::fp32, images, side, plain, {}});
      batch->release();
    }
    uploads.join();
    over = true;
    works.join();
    CHECK(device->synchronised == 0);
    device->run_all();
  }
  CHECK(device->errors().empty());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    CHECK(std::ranges::all_of(outputs[i], [&](float v) { return v == static_cast<float>(i % 200); }));
}

TEST_CASE("upload ring: stopped while upload, step and device are at work; each host slot comes back once") {
  const test::Watchdog watchdog("upload ring");
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    auto device = std::make_shared<RecordingDevice>();
    std::deque<HostSlot> host(64);  // outlives the copies from it
    std::atomic<int> given = 0;
    {
      auto upload = Upload::create(device, {images, image_layout(side), 2});
      REQUIRE(upload);
      std::mutex mutex;
      std::deque<DeviceBatch> ahead;
      std::atomic<bool> over = false, uploaded = false;
      std::vector<float> output(values);
      std::jthread works([&] {
        while (!over)
          if (!device->run_one()) std::this_thread::yield();
      });
      std::jthread uploads([&] {
        for (HostSlot& slot : host) {
          auto put = upload->put(slot.give(++given));
          if (!put) break;
          const std::lock_guard lock(mutex);
          ahead.push_back(std::move(*put));
        }
        uploaded = true;
      });
      std::jthread steps([&] {
        for (;;) {
          std::optional<DeviceBatch> batch;
          const bool last = uploaded;
          {
            const std::lock_guard lock(mutex);
            if (!ahead.empty()) batch = std::move(ahead.front()), ahead.pop_front();
          }
          if (!batch && last) break;
          if (!batch) continue;
          batch->wait();
          (void)device->convert({batch->samples, output.data(), Output::fp32, images, side, plain, {}});
          batch->release();
        }
      });
      while (given < round && !uploaded) std::this_thread::yield();
      upload->stop();
      uploads.join();
      steps.join();
      over = true;
      works.join();
      CHECK_FALSE(upload->put(host.back().give(1)));
      device->run_all();
    }
    CHECK(device->errors().empty());
    const int all = given;
    for (int i = 0; i < all && i < 63; ++i) CHECK(host[static_cast<std::size_t>(i)].released == 1);
  }
}

TEST_CASE("upload ring: samples and labels of any layout are copied whole, and none that is too large") {
  // Two channels of float, and a label for each voxel.
  const SampleLayout volume{{2, 3, 4, 5}, sizeof(float), 3 * 4 * 5};
  auto device = std::make_shared<RecordingDevice>();
  auto upload = Upload::create(device, {2, volume, 2});
  REQUIRE(upload);
  std::vector<std::uint8_t> samples(2 * volume.bytes()), labels(2 * volume.label_bytes);
  REQUIRE(samples.size() == 2 * 480);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::uint8_t>(7 * i);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>(200 + i % 5);
  int released = 0;
  const auto give = [&](int count, const SampleLayout& layout) {
    return HostBatch{samples.data(), labels.data(), count, layout, [&] { ++released; }};
  };
  auto put = upload->put(give(2, volume));
  REQUIRE(put);
  device->run_all();
  CHECK(released == 1);
  CHECK(put->count == 2);
  CHECK(put->sample.shape == volume.shape);
  CHECK(std::equal(samples.begin(), samples.end(), put->samples));
  CHECK(std::equal(labels.begin(), labels.end(), static_cast<const std::uint8_t*>(put->labels)));
  put->release();

  SampleLayout more_labels = volume, wider = volume;
  ++more_labels.label_bytes;
  ++wider.shape[3];
  for (const SampleLayout& larger : {more_labels, wider}) {
    const auto refused = upload->put(give(2, larger));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().cause.find("larger than a device slot") != std::string::npos);
  }
  CHECK(released == 3);
}
