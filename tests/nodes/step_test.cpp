#include "nodes/step.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace sluice;

namespace {

Batch batch_on_device(std::uint64_t number, int& released) {
  auto on_device = std::make_shared<OnDevice>();
  on_device->batch.count = 3;
  on_device->batch.wait = [] {};
  on_device->batch.release = [&released] { ++released; };
  on_device->bad = {{1, "a.jpg", "empty file", ""}};
  Batch batch;
  batch.number = number;
  batch.waited = 17;
  batch.device = std::move(on_device);
  return batch;
}

}  // namespace

TEST_CASE("step: hands over the batch, its number, its bad images and the wait") {
  int released = 0, calls = 0;
  StepStage* stage = nullptr;
  StepStage step([&](std::uint64_t number, OnDevice& batch, Nanoseconds waited) -> Status {
    ++calls;
    CHECK(number == 40);
    CHECK(batch.batch.count == 3);
    REQUIRE(batch.bad.size() == 1);
    CHECK(waited == 17);
    CHECK(released == 0);
    CHECK(stage->busy());
    CHECK(stage->begun() == 1);
    return Done{};
  });
  stage = &step;
  CHECK_FALSE(step.busy());
  CHECK(step.begun() == 0);
  Batch batch = batch_on_device(40, released);
  REQUIRE(step(batch));
  CHECK(calls == 1);
  CHECK_FALSE(step.busy());
  CHECK(step.begun() == 1);
  CHECK(batch.device == nullptr);
}

TEST_CASE("step: a batch is released exactly once, whatever becomes of it") {
  using Consume = StepStage::Consume;
  const Consume leaves = [](std::uint64_t, OnDevice&, Nanoseconds) { return Status(Done{}); };
  const Consume fails = [](std::uint64_t, OnDevice&, Nanoseconds) {
    return Status(Error{"step", "", "cannot", ""});
  };
  const Consume releases = [](std::uint64_t, OnDevice& batch, Nanoseconds) {
    batch.batch.release();
    return Status(Done{});
  };
  const Consume moves_it_on = [](std::uint64_t, OnDevice& batch, Nanoseconds) {
    const DeviceBatch taken = std::move(batch.batch);
    taken.release();
    return Status(Error{"step", "", "cannot", ""});
  };
  const Consume releases_twice = [](std::uint64_t, OnDevice& batch, Nanoseconds) {
    batch.batch.release();
    batch.batch.release();
    return Status(Done{});
  };
  const Consume throws_before = [](std::uint64_t, OnDevice&, Nanoseconds) -> Status {
    throw std::runtime_error("before");
  };
  const Consume throws_after = [](std::uint64_t, OnDevice& batch, Nanoseconds) -> Status {
    batch.batch.release();
    throw std::runtime_error("after");
  };
  int number = 0;
  for (const Consume& consume :
       {leaves, fails, releases, moves_it_on, releases_twice, throws_before, throws_after}) {
    CAPTURE(number++);
    int released = 0;
    StepStage step(consume);
    Batch batch = batch_on_device(0, released);
    try {
      (void)step(batch);
    } catch (const std::runtime_error&) {
      // The graph makes a failure of it.
    }
    CHECK(released == 1);
    CHECK_FALSE(step.busy());
  }
}
