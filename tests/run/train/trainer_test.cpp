#include "run/train/trainer.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/fake_training.hpp"
#include "tests/support/timeless.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;
using nlohmann::json;
using Calls = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

const std::string last_name = "checkpoints/last.ckpt";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> timeless(const std::vector<std::string>& lines) {
  std::vector<std::string> all;
  for (const std::string& line : lines) {
    json record = json::parse(line);
    forget_clock(record);
    all.push_back(record.dump());
  }
  return all;
}

Snapshot checkpoint(const fs::path& file) {
  Result<Snapshot> read = read_checkpoint(file);
  REQUIRE_MESSAGE(read, read.error().text());
  return *read;
}

Position position(const fs::path& file) {
  Result<Position> position = position_of(checkpoint(file));
  REQUIRE_MESSAGE(position, position.error().text());
  return *position;
}

StartPoint start_at(const fs::path& file) {
  StartPoint start;
  start.resume = checkpoint(file);
  start.position = position(file);
  return start;
}

// Fails the given call, counted from 1.
std::function<Status(const std::string&)> fail_at(const std::string& call, int which) {
  return [call, left = which](const std::string& made) mutable -> Status {
    if (!made.starts_with(call) || --left != 0) return Done{};
    return Error{"step", "network", "cannot " + call, ""};
  };
}

}  // namespace

TEST_CASE("trainer: a whole run trains, validates, records and saves when it should") {
  const TemporaryFolder folder;
  FakeTraining t(tiny_facts(folder.path(), tiny_config()));
  REQUIRE(t.run());
  REQUIRE(t.trainer.over());
  CHECK(t.network.calls == Calls{"train 0 at 0.1",
                                 "train 1 at 0.0904508, read back",
                                 "read back",
                                 "train 2 at 0.0654508, read back",
                                 "read back",
                                 "eval 2",
                                 "eval 1",
                                 "read back",
                                 "read back",
                                 "snapshot",  //
                                 "train 3 at 0.0345492, read back",
                                 "read back",
                                 "train 4 at 0.00954915",
                                 "train 5 at 0, read back",
                                 "read back",
                                 "eval 2",
                                 "eval 1",
                                 "read back",
                                 "read back",
                                 "snapshot"});
  CHECK(t.given == 10);
  CHECK(t.released == 10);
  CHECK(t.trainer.steps() == 6);
  CHECK(t.trainer.epoch() == 1);
  CHECK_FALSE(t.trainer.stopped_early());
  const std::string told = t.told();
  CHECK(has(told, "made"));
  CHECK(has(told, "saved " + (folder / last_name).string()));
  std::vector<std::string> events;
  for (const std::string& line : t.metrics) {
    const json record = json::parse(line);
    events.push_back(record.at("event").get<std::string>() + " " +
                     std::to_string(record.at("step").get<int>()));
  }
  CHECK(events == Calls{"train 2", "train 3", "val 3", "train 4", "train 6", "val 6"});
  const Position p = position(folder / last_name);
  CHECK(p.step == 6);
  CHECK(p.validated);
  CHECK(p.epoch == 1);
  CHECK(p.records == 6);
  CHECK(p.config == to_toml(tiny_config()));
  CHECK(p.monitor == "val/loss");
  CHECK(p.best.size() == 1);
  CHECK(FakeNetwork::saved(checkpoint(folder / last_name)) == t.network.weight);
}

TEST_CASE("trainer: the means of a record are those of its steps alone, those of a summary of the epoch") {
  const TemporaryFolder folder;
  FakeTraining t(tiny_facts(folder.path(), tiny_config()));
  std::vector<double> weights;  // before each step: the loss of its images
  t.network.injected = [&](const std::string& call) -> Status {
    if (call.starts_with("train")) weights.push_back(t.network.weight);
    return Done{};
  };
  REQUIRE(t.run(0, 5));
  REQUIRE(t.trainer.over());
  const std::string told = t.told();
  REQUIRE(weights.size() == 3);
  CHECK(json::parse(t.metrics.at(0)).at("train/loss") == (weights[0] + weights[1]) / 2);
  CHECK(json::parse(t.metrics.at(1)).at("train/loss") == weights[2]);
  CHECK(json::parse(t.metrics.at(2)).at("val/loss") == t.network.weight);
  char mean[40];
  std::snprintf(mean, sizeof mean, "Epoch 0: train/loss %.4f", (weights[0] + weights[1] + weights[2]) / 3);
  CHECK_MESSAGE(has(told, mean), told);
}

TEST_CASE("trainer: checkpoints come every so many steps, and by the clock") {
  for (const bool by_clock : {false, true}) {
    const TemporaryFolder folder;
    Config config = tiny_config();
    config.checkpoint.every_steps = by_clock ? 0 : 2;
    config.checkpoint.every_minutes = by_clock ? 1e-12 : 0;
    FakeTraining t(tiny_facts(folder.path(), config));
    REQUIRE(t.run(0, 3));
    CHECK(std::ranges::count(t.network.calls, "snapshot") == (by_clock ? 3 : 1));
    REQUIRE(t.trainer.over());
    CHECK(position(folder / last_name).step == 3);
  }
}

TEST_CASE("trainer: a run that stops after any batch and goes on does what one that never stopped does") {
  const Watchdog watchdog("trainer");
  for (const std::int64_t accumulate : {1, 2}) {
    for (const std::int64_t every : {0, 1}) {
      Config config = tiny_config();
      config.train.accumulate = accumulate;
      config.checkpoint.every_steps = every;
      config.log.every = 5;
      const TemporaryFolder whole_folder;
      FakeTraining whole(tiny_facts(whole_folder.path(), config));
      REQUIRE(whole.run());
      REQUIRE(whole.trainer.over());
      (void)whole.told();
      const std::uint64_t batches = whole.trainer.sequence().batches();
      for (std::uint64_t stopped = 1; stopped < batches; ++stopped) {
        CAPTURE(accumulate);
        CAPTURE(every);
        CAPTURE(stopped);
        const TemporaryFolder folder;
        const RunFacts facts = tiny_facts(folder.path(), config);
        FakeTraining before(facts);
        REQUIRE(before.run(0, stopped));
        REQUIRE(before.trainer.over());
        (void)before.told();
        if (before.trainer.steps() == 0) {
          CHECK_FALSE(fs::exists(folder / last_name));
          continue;
        }
        StartPoint start = start_at(folder / last_name);
        const Result<std::uint64_t> first = batch_after(*start.position, facts, "last.ckpt");
        REQUIRE(first);
        CHECK(*first <= stopped);
        std::vector<std::string> records = before.metrics;
        records.resize(start.position->records);
        FakeTraining after(facts, std::move(start));
        REQUIRE(after.run(*first));
        REQUIRE(after.trainer.over());
        (void)after.told();
        records.insert(records.end(), after.metrics.begin(), after.metrics.end());
        CHECK(timeless(records) == timeless(whole.metrics));
        CHECK(after.network.calls.at(0) == "restore");
        const Calls& all = whole.network.calls;
        const Calls tail(after.network.calls.begin() + 1, after.network.calls.end());
        REQUIRE(tail.size() <= all.size());
        CHECK(tail == Calls(all.end() - static_cast<std::ptrdiff_t>(tail.size()), all.end()));
        CHECK(read_text(folder / last_name) == read_text(whole_folder / last_name));
      }
    }
  }
}

TEST_CASE("trainer: best checkpoints of another figure mean nothing to a resumed run") {
  for (const char* monitor : {"val/loss", "val/acc5"}) {
    const TemporaryFolder folder;
    Config config = tiny_config();
    FakeTraining before(tiny_facts(folder.path(), config));
    REQUIRE(before.run(0, 5));
    REQUIRE(before.trainer.over());
    REQUIRE(position(folder / last_name).best.size() == 1);
    config.checkpoint.monitor = monitor;
    config.checkpoint.keep = 5;
    FakeTraining after(tiny_facts(folder.path(), config), start_at(folder / last_name));
    REQUIRE(after.run(5));
    REQUIRE(after.trainer.over());
    CHECK(position(folder / last_name).best.size() == (config.checkpoint.monitor == "val/loss" ? 2 : 1));
    CHECK(position(folder / last_name).monitor == monitor);
  }
}

TEST_CASE("trainer: a loss that is not finite ends the run by step and learning rate, and nothing is saved") {
  // At a record; at a checkpoint between two records; at one in the second epoch.
  struct Case {
    std::int64_t log_every, save_every;
    std::uint64_t sound_batches;
    std::string told;
  };
  for (const Case& c : {Case{2, 0, 1, "by step 2, at learning rate 0.0904508"},
                        Case{100, 2, 1, "by step 2, at learning rate 0.0904508"},
                        Case{100, 4, 5, "by step 4, at learning rate 0.0345492"}}) {
    const TemporaryFolder folder;
    Config config = tiny_config();
    config.log.every = c.log_every;
    config.checkpoint.every_steps = c.save_every;
    FakeTraining t(tiny_facts(folder.path(), config));
    REQUIRE(t.run(0, c.sound_batches));
    const auto saved = std::ranges::count(t.network.calls, "snapshot");
    t.network.finite = false;
    const Status ended = t.step(c.sound_batches);
    REQUIRE_FALSE(ended);
    CHECK(ended.error().subject == "train/loss");
    CHECK_MESSAGE(has(ended.error().cause, c.told), ended.error().cause);
    REQUIRE(t.trainer.over());
    CHECK(std::ranges::count(t.network.calls, "snapshot") == saved);
  }
}

TEST_CASE("trainer: a validation that is not finite ends the run, and nothing is saved") {
  const TemporaryFolder folder;
  RunFacts facts = tiny_facts(folder.path(), tiny_config());
  Log log({});
  FakeNetwork network;
  Trainer trainer({.facts = facts,
                   .network = [&](const auto&) -> Result<Network> {
                     Network functions = network.functions();
                     functions.read_back = [&]() -> Result<StepSums> {
                       StepSums sums;
                       sums.eval.not_finite = network.calls.back().starts_with("eval") ? 1 : 0;
                       return sums;
                     };
                     return functions;
                   }},
                  log);
  REQUIRE(trainer.begin());
  Status done = Done{};
  for (std::uint64_t number = 0; number < 5 && done; ++number) {
    OnDevice batch;
    batch.batch.count = 2;
    batch.batch.release = [] {};
    done = trainer.step(number, batch, 0);
  }
  REQUIRE_FALSE(done);
  CHECK(has(done.error().text(), "val/loss: is not finite after epoch 0"));
  REQUIRE(trainer.over());
  CHECK_FALSE(fs::exists(folder / last_name));
}

TEST_CASE("trainer: a network that fails ends the run by its error; what was sound is saved") {
  struct Case {
    std::string call;
    int which;
    std::optional<std::uint64_t> saved;  // step of last.ckpt; none: there is none
    bool over = true;                    // whether the end is in order
  };
  for (const Case& c :
       {Case{"make", 1, std::nullopt}, Case{"train", 3, std::nullopt}, Case{"eval", 1, 3}, Case{"eval", 2, 3},
        Case{"read back", 1, 2}, Case{"read back", 3, 3}, Case{"snapshot", 1, 3}, Case{"train", 4, 3}}) {
    const TemporaryFolder folder;
    CAPTURE(c.call);
    CAPTURE(c.which);
    FakeTraining t(tiny_facts(folder.path(), tiny_config()));
    t.network.injected = fail_at(c.call, c.which);
    const Status ended = t.run();
    REQUIRE_FALSE(ended);
    CHECK(ended.error().cause == "cannot " + c.call);
    CHECK(static_cast<bool>(t.trainer.over()) == c.over);
    CHECK(t.released == t.given);
    CHECK(fs::exists(folder / last_name) == c.saved.has_value());
    if (c.saved) CHECK(position(folder / last_name).step == *c.saved);
  }
}

TEST_CASE("trainer: begins with weights, a checkpoint, or neither") {
  const TemporaryFolder folder;
  const RunFacts facts = tiny_facts(folder.path(), tiny_config());
  FakeTraining anew(facts);
  REQUIRE(anew.trainer.begin());
  CHECK(anew.network.calls.empty());

  StartPoint from_weights;
  from_weights.weights.emplace();
  from_weights.weights->source = "other\n.pt";
  FakeNetwork other;
  other.weight = 77;
  other.save(*from_weights.weights);
  from_weights.weights->source = "other\n.pt";
  FakeTraining weights(facts, std::move(from_weights));
  REQUIRE(weights.trainer.begin());
  CHECK(weights.network.calls == Calls{"start from"});
  CHECK(weights.network.weight == 77);
  CHECK(has(weights.told(), "starting from other\\n.pt, with a new classifier"));

  FakeTraining broken(facts, [&] {
    StartPoint point;
    point.position.emplace();
    point.resume.emplace();
    return point;
  }());
  broken.network.injected = fail_at("restore", 1);
  const Status refused = broken.trainer.begin();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().cause == "cannot restore");
  REQUIRE(broken.trainer.over());
  CHECK_FALSE(fs::exists(folder / last_name));
}

TEST_CASE("trainer: bad images are listed and counted, and too many of them end the run where it stood") {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.data.max_bad = 0.2;
  FakeTraining t(tiny_facts(folder.path(), config));
  t.bad = [](std::uint64_t number) {
    return number < 3 ? std::vector<Bad>{{0, std::to_string(number) + ".jpg", "empty file", "x.jpg"}}
                      : std::vector<Bad>();
  };
  const Status ended = t.run();
  REQUIRE_FALSE(ended);
  CHECK(has(ended.error().text(), "2 of 6 train images"));
  REQUIRE(t.trainer.over());
  CHECK(t.released == t.given);
  const Position p = position(folder / last_name);
  CHECK(p.step == 1);
  CHECK(p.bad == BadCounts{.in_phase = 1, .lines = 1});
  CHECK(has(t.told(), "0.jpg: empty file; replaced"));
}

TEST_CASE("trainer: a disk that was full for a while costs nothing in the end") {
  const TemporaryFolder folder;
  FakeTraining t(tiny_facts(folder.path(), tiny_config()));
  fs::remove_all(folder / "checkpoints");  // nothing can be written
  REQUIRE(t.run(0, 5));
  fs::create_directories(folder / "checkpoints");
  const Status saved = t.trainer.over();
  REQUIRE_MESSAGE(saved, saved.error().text());
  CHECK(position(folder / last_name).step == 3);
}
