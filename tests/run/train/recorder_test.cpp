#include "run/train/recorder.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <semaphore>
#include <sstream>
#include <thread>

#include "tests/support/watchdog.hpp"

using namespace sluice;
using nlohmann::json;

namespace {

// No test takes so long: beside it, the time that a test itself takes is nothing.
constexpr Nanoseconds ages = 1'000'000'000'000'000;
constexpr double ages_in_seconds = 1e6;

BatchPlan batch(Split split, std::uint64_t in_phase, std::uint64_t of = 4, std::uint32_t epoch = 3) {
  BatchPlan plan;
  plan.split = split;
  plan.epoch = epoch;
  plan.in_phase = in_phase;
  plan.phase_batches = of;
  return plan;
}

const PhaseSums trained{.loss = 6, .count = 4, .judged = 4, .correct1 = 1, .correct5 = 3, .batches = 2};

Recorder::Options with_figures(Recorder::Options options) {
  options.figures = image_classification(32).figures;
  return options;
}

// A recorder with a log whose lines are kept.
struct Written {
  std::vector<std::string> metrics, text;
  std::ostringstream screen;  // plain lines
  Log log;
  Recorder recorder;

  explicit Written(Recorder::Options options = {})
      : log({.screen = &screen,
             .plain = std::chrono::milliseconds(0),
             .metrics = [this](std::string_view line) -> Status {
               return metrics.emplace_back(line), Done{};
             },
             .text = [this](std::string_view line) -> Status { return text.emplace_back(line), Done{}; }}),
        recorder(with_figures(options), log) {}

  [[nodiscard]] std::vector<json> records() {
    REQUIRE(log.close());
    std::vector<json> all;
    for (const std::string& line : metrics) all.push_back(json::parse(line));
    return all;
  }
  [[nodiscard]] std::string told() {
    REQUIRE(log.close());
    std::string all;
    for (const std::string& line : text) all += line + "\n";
    return all;
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("recorder: a record of training has means, rates and the learning rate") {
  Written w({.accumulate = 2});
  w.recorder.batch_came(batch(Split::train, 0), ages);
  w.recorder.batch_taken(30);
  w.recorder.batch_taken(30);
  w.recorder.training(3, 14, trained, 0.125);
  CHECK(w.recorder.records() == 1);
  const std::vector<json> records = w.records();
  REQUIRE(records.size() == 1);
  const json& r = records[0];
  CHECK(r.at("event") == "train");
  CHECK(r.at("epoch") == 3);
  CHECK(r.at("step") == 14);
  CHECK(r.at("train/loss") == 1.5);
  CHECK(r.at("train/acc1") == 25);
  CHECK(r.at("train/acc5") == 75);
  CHECK(r.at("train/lr") == 0.125);
  CHECK(r.at("data_wait").get<double>() == doctest::Approx(1));
  CHECK(r.at("images_per_s").get<double>() == doctest::Approx(60 / ages_in_seconds));
  CHECK(r.at("step_ms").get<double>() == doctest::Approx(ages_in_seconds * 1e3));  // two batches, one step
  CHECK_FALSE(r.contains("gpu_util"));
}

TEST_CASE("recorder: rates count from the last record on, the progress of a phase from its start") {
  Written w;
  w.recorder.batch_came(batch(Split::train, 0), ages);
  w.recorder.batch_taken(32);
  w.recorder.training(3, 1, trained, 0.1);
  w.recorder.batch_came(batch(Split::train, 1), 0);
  w.recorder.batch_taken(32);
  w.recorder.training(3, 2, trained, 0.1);
  w.recorder.batch_came(batch(Split::train, 0, 4, 4), ages / 2);  // the next epoch
  w.recorder.batch_taken(32);
  w.recorder.training(4, 5, trained, 0.1);
  const std::vector<json> records = w.records();
  REQUIRE(records.size() == 3);
  CHECK(records[0].at("data_wait").get<double>() == doctest::Approx(1));
  CHECK(records[1].at("data_wait") == 0);
  CHECK(records[1].at("images_per_s").get<double>() > 32 / ages_in_seconds * 100);
  CHECK(records[2].at("data_wait").get<double>() == doctest::Approx(1));
  CHECK(records[2].at("images_per_s").get<double>() == doctest::Approx(64 / ages_in_seconds));
}

TEST_CASE("recorder: where no image counted there is no loss, and where none was judged no accuracy") {
  Written w;
  w.recorder.batch_came(batch(Split::train, 0), 0);
  w.recorder.batch_taken(2);
  w.recorder.training(0, 1, PhaseSums{}, 0.5);
  w.recorder.training(0, 2, PhaseSums{.loss = 3, .count = 2}, 0.5);
  const std::vector<json> records = w.records();
  REQUIRE(records.size() == 2);
  CHECK_FALSE(records[0].contains("train/loss"));
  CHECK(records[0].at("train/lr") == 0.5);
  CHECK(records[1].at("train/loss") == 1.5);
  CHECK_FALSE(records[1].contains("train/acc1"));
}

TEST_CASE("recorder: the progress line shows loss, learning rate, speed and GPU of the last record") {
  Written w;
  w.recorder.sources().gpu = [] { return Values{{"gpu_util", 87}, {"gpu_mem_bytes", 0x3p30}}; };
  w.recorder.batch_came(batch(Split::train, 1), ages);  // resumed in the middle
  w.recorder.batch_taken(8);
  w.recorder.training(3, 14, trained, 0.125);
  w.recorder.batch_done(batch(Split::train, 1));
  w.recorder.batch_taken(8);
  w.recorder.batch_taken(8);
  w.recorder.batch_done(batch(Split::train, 3));
  const std::vector<json> records = w.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].at("gpu_util") == 87);
  CHECK(records[0].at("gpu_mem_bytes") == 0x3p30);
  const std::string told = w.told();
  CHECK_MESSAGE(has(told, "epoch 3 step 4/4 train/loss 1.5 train/lr 0.125 img/s "), told);
  CHECK_MESSAGE(has(told, "gpu % 87 gpu GiB 3"), told);
}

TEST_CASE("recorder: a validation has its record, a summary of the epoch and a diagnosis, in this order") {
  Written w({.records = 5});
  w.recorder.sources().ledger_peak = [] { return std::size_t{4096}; };
  w.recorder.sources().diagnosis = [] { return std::string("limited by storage"); };
  w.recorder.batch_came(batch(Split::train, 3), ages);
  w.recorder.batch_taken(100);
  w.recorder.batch_done(batch(Split::train, 3));
  w.recorder.batch_came(batch(Split::val, 0, 1), ages);
  w.recorder.batch_taken(50);
  w.recorder.batch_done(batch(Split::val, 0, 1));
  StepSums sums;
  sums.eval = {.loss = 1, .count = 4, .judged = 4, .correct1 = 2, .correct5 = 4, .batches = 1};
  sums.ema = {.loss = 8, .count = 4, .judged = 4, .correct1 = 4, .correct5 = 4, .batches = 1};
  const Values summary = w.recorder.validation(3, 16, trained, sums);
  CHECK(summary == Values{{"train/loss", 1.5},
                          {"train/acc1", 25},
                          {"train/acc5", 75},
                          {"val/loss", 0.25},
                          {"val/acc1", 50},
                          {"val/acc5", 100},
                          {"val/ema_loss", 2},
                          {"val/ema_acc1", 100},
                          {"val/ema_acc5", 100}});
  CHECK(w.recorder.records() == 6);
  const std::vector<json> records = w.records();
  REQUIRE(records.size() == 1);
  const json& r = records[0];
  CHECK(r.at("event") == "val");
  CHECK(r.at("step") == 16);
  CHECK(r.at("val/loss") == 0.25);
  CHECK(r.at("val/ema_acc1") == 100);
  CHECK(r.at("peak_ledger_bytes") == 4096);
  CHECK(r.at("diagnosis") == "limited by storage");
  CHECK(r.at("data_wait").get<double>() == doctest::Approx(1));
  CHECK_FALSE(r.contains("train/loss"));
  const std::string told = w.told();
  CHECK_MESSAGE(has(told, "epoch 3 validation step 1/1"), told);
  const std::size_t line = told.find("Epoch 3: train/loss 1.5000"),
                    diagnosis = told.find("limited by storage");
  CHECK_MESSAGE(line != std::string::npos, told);
  CHECK(diagnosis > line);
  CHECK(has(told, "(2000000.0 s, "));  // training and validation
}

TEST_CASE("recorder: a validation without a usable image says so") {
  Written w;
  w.recorder.batch_came(batch(Split::val, 0, 1), 0);
  CHECK(w.recorder.validation(2, 8, PhaseSums{}, StepSums{}).empty());
  CHECK(has(w.told(), "validation of epoch 2: no image could be used"));
  CHECK_FALSE(w.records()[0].contains("val/loss"));
}

TEST_CASE("recorder: what is shown does not outlive its epoch") {
  Written w;
  w.recorder.batch_came(batch(Split::train, 0), 0);
  w.recorder.training(3, 1, trained, 0.1);
  (void)w.recorder.validation(3, 1, trained, StepSums{});
  w.recorder.batch_done(batch(Split::train, 0, 1, 4));
  const std::string told = w.told(), last = w.text.back();
  CHECK_MESSAGE(has(last, "epoch 4 step 1/1"), last);
  CHECK_FALSE(has(last, "train/lr"));
}

TEST_CASE("recorder: one that does not speak tells of bad images alone") {
  Written w({.speaks = false, .records = 2});
  w.recorder.batch_came(batch(Split::train, 0, 1), 0);
  w.recorder.batch_taken(4);
  w.recorder.training(3, 1, trained, 0.1);
  w.recorder.batch_done(batch(Split::train, 0, 1));
  (void)w.recorder.validation(3, 1, trained, StepSums{});
  w.recorder.tell("a note");
  w.recorder.warn("a warning");
  w.recorder.bad_images({{0, "a/\n1.jpg", "empty file", "b.jpg"}, {1, "c.jpg", "not a JPEG", ""}});
  CHECK(w.recorder.records() == 2);
  CHECK(w.records().empty());
  CHECK(w.text.size() == 2);
  CHECK(has(w.told(), "a/\\n1.jpg: empty file; replaced"));
  CHECK(has(w.told(), "c.jpg: not a JPEG; left out"));
}

TEST_CASE("recorder: the time that a full queue holds a record up is told to the log's statistics") {
  const test::Watchdog watchdog("recorder");
  std::counting_semaphore<> gate(0);
  Log log({.capacity = 1, .metrics = [&](std::string_view) -> Status { return gate.acquire(), Done{}; }});
  Recorder recorder(with_figures({}), log);
  NodeStats stats(NodeId::log, 1);
  recorder.sources().log_stats = &stats;
  while (log.waited() == std::chrono::nanoseconds(0)) {
    std::jthread writer([&] {
      for (int i = 0; i < 5; ++i) recorder.training(0, i, trained, 0.1);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    gate.release(5);
  }
  CHECK(log.close());
  CHECK(stats.figures(0).wait_bound == log.waited().count());
}
