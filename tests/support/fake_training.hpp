// A trainer over a network of one number that writes down what is asked of it: whole runs in milliseconds,
// without torch, graph or images.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "nodes/step.hpp"
#include "run/train/trainer.hpp"
#include "tests/support/folder.hpp"

namespace sluice::test {

// The number changes with each step, by the step's learning rate, and losses are made of it. All of them are
// whole, so that sums are the same however they are split.
struct FakeNetwork {
  std::vector<std::string> calls;
  std::function<Status(const std::string& call)> injected = [](const std::string&) { return Status(Done{}); };
  bool finite = true, intact = true;
  int accumulate = 1;
  double weight = 1;

  Network functions() {
    return {
        .train =
            [this](DeviceBatch&& batch, const TrainStep& how) {
              batch.release();
              char text[100];
              std::snprintf(text, sizeof text, "train %d at %g%s", static_cast<int>(how.steps), how.lr,
                            how.read_back ? ", read back" : "");
              return called(text, [&] { train(batch.count, how.lr); });
            },
        .eval =
            [this](DeviceBatch&& batch) {
              batch.release();
              return called("eval " + std::to_string(batch.count), [&] { add(evaluated_, batch.count); });
            },
        .read_back = [this]() -> Result<StepSums> {
          StepSums sums;
          const Status done = called("read back", [&] {
            sums.train = std::exchange(trained_, {});
            sums.eval = std::exchange(evaluated_, {});
            sums.finite = finite;
          });
          if (!done) return done.error();
          return sums;
        },
        .snapshot = [this](Snapshot& into) { return called("snapshot", [&] { save(into); }); },
        .restore = [this](const Snapshot& from) { return called("restore", [&] { weight = saved(from); }); },
        .start_from = [this](const Snapshot& from) -> Result<bool> {
          const Status done = called("start from", [&] { weight = saved(from); });
          if (!done) return done.error();
          return true;
        },
        .share = [this] { return called("share", [] {}); },
        .intact = [this] { return intact; }};
  }

  [[nodiscard]] static double saved(const Snapshot& snapshot) {
    double value = 0;
    if (const StoredTensor* tensor = snapshot.find("model.w"))
      std::memcpy(&value, snapshot.bytes(*tensor).data(), sizeof value);
    return value;
  }
  void save(Snapshot& into) const {
    into.arch = "resnet18";
    into.classes = 2;
    into.source.clear();
    into.clear_tensors();
    std::memcpy(into.add("model.w", "f64", {1}).data(), &weight, sizeof weight);
  }

 private:
  Status called(const std::string& call, const std::function<void()>& work) {
    calls.push_back(call);
    Status status = injected(call);
    if (status) work();
    return status;
  }
  void add(PhaseSums& to, int count) const {
    to.loss += weight * count;
    to.count += count;
    to.judged += count;
    to.correct1 += static_cast<int>(weight) % (count + 1);
    to.correct5 += count;
    ++to.batches;
  }
  void train(int count, double lr) {
    add(step_, count);
    if (++pending_ < accumulate) return;
    pending_ = 0;
    trained_.loss += step_.loss;
    trained_.count += step_.count;
    trained_.judged += step_.judged;
    trained_.correct1 += step_.correct1;
    trained_.correct5 += step_.correct5;
    trained_.batches += step_.batches;
    step_ = {};
    weight = std::fmod(weight * 3 + std::round(lr * 1e6), 1009) + 1;
  }

  PhaseSums step_, trained_, evaluated_;
  int pending_ = 0;
};

// Six training images and three of validation, two a batch: three steps and two batches an epoch, two epochs.
inline Config tiny_config() {
  Config c;
  c.model.arch = "resnet18";
  c.train.epochs = 2;
  c.train.batch = 2;
  c.optim.lr = 0.1;
  c.optim.base_batch = 2;
  c.schedule.warmup_epochs = 0;
  c.schedule.interval = "step";
  c.checkpoint.keep = 1;
  c.checkpoint.monitor = "val/loss";
  c.log.every = 2;
  return c;
}

inline RunFacts tiny_facts(const std::filesystem::path& folder, const Config& config, int rank = 0,
                           int ranks = 1) {
  RunShape shape;
  shape.batch = static_cast<std::uint32_t>(config.train.batch);
  shape.accumulate = static_cast<std::uint32_t>(config.train.accumulate);
  shape.epochs = static_cast<std::uint32_t>(config.train.epochs);
  shape.rank = static_cast<std::uint32_t>(rank);
  shape.ranks = static_cast<std::uint32_t>(ranks);
  shape.train_images = 3 * shape.global_batch() * shape.accumulate;
  shape.val_images = 3 * shape.ranks;
  shape.seed = 42;
  std::filesystem::create_directories(folder / "checkpoints");
  Seat seat;
  seat.rank = rank;
  seat.world = ranks;
  return {.config = config,
          .config_text = to_toml(config),
          .sequence = *Sequence::make(shape),
          .classes = 2,
          .device = "cpu",
          .seat = seat,
          .folder = folder};
}

struct FakeTraining {
  std::vector<std::string> metrics, text;
  int given = 0, released = 0;
  int signal = 0;
  std::function<std::vector<Bad>(std::uint64_t number)> bad = [](std::uint64_t) {
    return std::vector<Bad>();
  };
  Stop stop;
  NodeStats log_stats{NodeId::log, 1};
  Log log;
  FakeNetwork network;
  Trainer trainer;
  StepStage stage;

  explicit FakeTraining(const RunFacts& facts, StartPoint start = {}, Exchange exchange = {})
      : log({.metrics = [this](std::string_view line) -> Status {
               return metrics.emplace_back(line), Done{};
             },
             .text = [this](std::string_view line) -> Status { return text.emplace_back(line), Done{}; }}),
        trainer({.facts = facts,
                 .start = std::move(start),
                 .network = [this](const std::function<void(const std::string&)>& note) -> Result<Network> {
                   note("made");
                   if (Status made = network.injected("make"); !made) return made.error();
                   return network.functions();
                 },
                 .exchange = std::move(exchange),
                 .signal = [this] { return signal; }},
                log),
        stage([this](std::uint64_t number, OnDevice& batch, Nanoseconds waited) {
          return trainer.step(number, batch, waited);
        }) {
    network.accumulate = static_cast<int>(facts.config.train.accumulate);
    trainer.connect(log_stats, stop, [] { return std::size_t{4096}; });
  }

  Status step(std::uint64_t number) {
    auto on_device = std::make_shared<OnDevice>();
    on_device->batch.count = static_cast<int>(trainer.sequence().at(number).places);
    on_device->batch.sample = image_layout(32);
    on_device->batch.wait = [] {};
    on_device->batch.release = [this] { ++released; };
    on_device->bad = bad(number);
    Batch batch;
    batch.number = number;
    batch.device = std::move(on_device);
    ++given;
    return stage(batch);
  }
  // As the graph does: batch after batch, until one fails or a stop is asked for.
  Status run(std::uint64_t from = 0, std::uint64_t to = UINT64_MAX) {
    if (Status begun = trainer.begin(); !begun) return begun;
    for (std::uint64_t number = from; number < std::min(to, trainer.sequence().batches()); ++number) {
      if (Status done = step(number); !done) return done;
      if (stop.requested()) break;
    }
    return Done{};
  }
  // What was said, after the end.
  std::string told() {
    (void)log.close();
    std::string all;
    for (const std::string& line : text) all += line + "\n";
    return all;
  }
};

}  // namespace sluice::test
