#include "model/train/capture.hpp"

#include <doctest/doctest.h>

#include <optional>

#include "tests/support/recording_device.hpp"

using namespace sluice;
using test::RecordingDevice;

namespace {

struct Run {
  explicit Run(bool possible = true) {
    device->faults.no_capture = !possible;
    capture.emplace(device, 8, 32, [this](const std::string& note) { notes.push_back(note); });
  }
  Status step(int images = 8, int size = 32) {
    return capture->run(images, size, [this]() -> Status {
      ++queued;
      return failure ? Status(*failure) : Status(Done{});
    });
  }
  std::shared_ptr<RecordingDevice> device = std::make_shared<RecordingDevice>();
  std::optional<Capture> capture;
  std::optional<Error> failure;
  std::vector<std::string> notes;
  int queued = 0;
};

}  // namespace

TEST_CASE("capture: is for a whole step on one GPU") {
  CHECK(why_no_capture("cuda", true, 1, true).empty());
  CHECK_FALSE(why_no_capture("cpu", true, 1, true).empty());
  CHECK_FALSE(why_no_capture("cuda", false, 1, true).empty());
  CHECK_FALSE(why_no_capture("cuda", true, 2, true).empty());
  CHECK_FALSE(why_no_capture("cuda", true, 1, false).empty());
}

TEST_CASE("capture: warms up, records once, and replays from then on") {
  Run run;
  for (int i = 0; i < Capture::warm_up; ++i) REQUIRE(run.step());
  CHECK(run.device->captures == 0);
  CHECK(run.queued == Capture::warm_up);
  for (int i = 0; i < 5; ++i) REQUIRE(run.step());
  CHECK(run.device->captures == 1);
  CHECK(run.device->replays == 5);            // the recorded step is done too, not only recorded
  CHECK(run.queued == Capture::warm_up + 1);  // once for the recording
  CHECK(run.notes.empty());
}

TEST_CASE("capture: batches of another shape are queued as usual, and do not count as warm-up") {
  Run run;
  for (int i = 0; i < 10; ++i) REQUIRE(run.step(4));
  for (int i = 0; i < 10; ++i) REQUIRE(run.step(8, 24));
  CHECK(run.queued == 20);
  CHECK(run.device->captures == 0);
  for (int i = 0; i < Capture::warm_up + 1; ++i) REQUIRE(run.step());
  CHECK(run.device->captures == 1);
  const int before = run.queued;
  REQUIRE(run.step(7));
  CHECK(run.queued == before + 1);
  REQUIRE(run.step());
  CHECK(run.device->replays == 2);
}

TEST_CASE("capture: where it is impossible the run goes on, with one note and no second try") {
  Run run(false);
  for (int i = 0; i < 10; ++i) REQUIRE(run.step());
  CHECK(run.queued == 10);
  CHECK(run.device->captures == 1);
  CHECK(run.device->replays == 0);
  REQUIRE(run.notes.size() == 1);
  CHECK(run.notes[0].find("this cannot be captured") != std::string::npos);
}

TEST_CASE("capture: a step that fails is a failure, in warm-up and after") {
  Run run;
  run.failure = Error{"step", "", "broken", ""};
  const Status warm = run.step();
  REQUIRE_FALSE(warm);
  CHECK(warm.error().cause == "broken");
  run.failure.reset();
  for (int i = 0; i < Capture::warm_up - 1; ++i) REQUIRE(run.step());
  run.failure = Error{"step", "", "broken", ""};
  REQUIRE_FALSE(run.step());  // fails while it is recorded, and again as it is run without
  CHECK(run.notes.size() == 1);
}
