// One rank of a small training, for tests and bench/ddp: prints what it sees after every step. Options can
// make it die, freeze or fail at a step.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "base/random.hpp"
#include "model/ranks/ranks.hpp"
#include "model/ranks/reduce_trace.hpp"
#include "model/train/train_step.hpp"

using namespace sluice;

namespace {

struct Options {
  StepOptions step;
  RanksOptions ranks;
  int steps = 3, warm = 0;
  bool mix = false, timed = false;
  std::string trace;
  int die_at = -1, freeze_at = -1, fail_at = -1;
};

// Seat p of global batch b shows the same at any number of ranks.
struct Images {
  Images(const Options& o, int number)
      : size(o.step.task.sample.width()), pixels(static_cast<std::size_t>(o.step.batch * size * size * 3)) {
    const int first = o.ranks.seat.rank * o.step.batch, values = size * size * 3;
    for (int i = 0; i < o.step.batch; ++i) {
      Random random(1, static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(first + i),
                    Purpose::synth);
      labels.push_back(static_cast<int>(random.below(static_cast<std::uint32_t>(o.step.classes))));
      for (int v = 0; v < values; ++v)
        pixels[static_cast<std::size_t>(i * values + v)] = static_cast<std::uint8_t>(random.below(256));
    }
  }
  DeviceBatch give() {
    return {pixels.data(), labels.data(), static_cast<int>(labels.size()), image_layout(size), [] {}, [] {}};
  }
  int size;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
};

struct Sums {
  std::uint64_t params = 0, state = 0;  // of the parameters, and of all that a checkpoint holds
};

Sums checksums(Step& step) {
  static Snapshot snapshot;  // keeps its memory
  Checksum params, state;
  if (!step.snapshot(snapshot)) return {};
  for (const StoredTensor& tensor : snapshot.tensors) {
    const auto bytes = snapshot.bytes(tensor);
    state.add(bytes);
    if (tensor.name.starts_with("model.") && tensor.name.find("running_") == std::string::npos)
      params.add(bytes);
  }
  return {params.value(), state.value()};
}

int failed(const Error& error) {
  std::fprintf(stderr, "failed: %s\n", error.text().c_str());
  return 1;
}

void misbehave(const Options& o, int number, Ranks* ranks) {
  if (number == o.die_at) raise(SIGKILL);
  if (number == o.freeze_at) raise(SIGSTOP);
  if (number == o.fail_at) ranks->fail({"worker", "", "fails as it was told to", ""});
}

Status train(const Options& o, Step& step, Images& images, int number) {
  const MixOptions mixing{.mixup = 0.2, .cutmix = 1.0, .share = 1, .to_cutmix = 0.5};
  for (int part = 0; part < o.step.accumulate; ++part) {
    const auto batch = static_cast<std::uint64_t>(number * o.step.accumulate + part);
    const Mix mix = o.mix ? choose_mix(mixing, 42, batch, o.step.task.sample.width()) : Mix{};
    if (Status done = step.train(images.give(), TrainStep(0.01, static_cast<std::uint64_t>(number), mix));
        !done)
      return done;
  }
  return Done{};
}

// Step by step, with all figures.
Status run(const Options& o, Step& step, Ranks* ranks) {
  for (int number = 0; number < o.steps; ++number) {
    misbehave(o, number, ranks);
    if (number == o.fail_at) return Error{"worker", "", "fails as it was told to", ""};
    Images images(o, number);
    if (Status done = train(o, step, images, number); !done) return done;
    const auto sums = step.read_back();
    if (!sums) return sums.error();
    const Sums kept = checksums(step);
    std::printf("step %d loss %a params %016lx state %016lx", number,
                sums->train.loss / static_cast<double>(sums->train.count), kept.params, kept.state);
    if (ranks != nullptr) {
      const std::int64_t mine[] = {ranks->seat().rank + 1, number};
      const auto told = ranks->exchange(mine);
      if (!told) return told.error();
      std::printf(" exchange %ld %ld", told->at(0), told->at(1));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return Done{};
}

Status measure(const Options& o, Step& step) {
  Images images(o, 0);
  std::vector<double> times;
  for (int number = 0; number < o.warm + o.steps; ++number) {
    const auto begin = std::chrono::steady_clock::now();
    if (Status done = train(o, step, images, number); !done) return done;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    if (number >= o.warm) times.push_back(took.count());
  }
  std::ranges::sort(times);
  std::printf("{\"step_ms\": %.1f, \"min_ms\": %.1f}\n", times[times.size() / 2], times.front());
  return Done{};
}

int work(Options o) {
  const Seat& seat = o.ranks.seat;
  if (!seat.alone()) {
    auto joined = Ranks::join(o.ranks);
    if (!joined) return failed(joined.error());
    o.step.ranks = *joined;
  }
  Ranks* const ranks = o.step.ranks.get();
  if (!o.trace.empty() && seat.first()) o.step.trace = std::make_shared<ReduceTrace>();
  if (ranks != nullptr) {
    ranks->watch([&](const Error& error) {
      std::fprintf(stderr, "lost: %s\n", error.text().c_str());
      ranks->abort();
    });
    const auto heard = ranks->from_first("greeting", "from rank " + std::to_string(seat.rank));
    if (!heard) return failed(heard.error());
    std::printf("greeting %s\n", heard->c_str());
  }
  auto step = Step::create(o.step);
  if (!step) return failed(step.error());
  const Status done = o.timed ? measure(o, *step) : run(o, *step, ranks);
  if (o.step.trace)
    if (const Status written = o.step.trace->write(o.trace, seat.rank); !written)
      return failed(written.error());
  if (!done) {
    std::printf("kept %016lx intact %d\n", checksums(*step).state, step->intact());
    return failed(done.error());
  }
  if (ranks != nullptr) ranks->leave(std::chrono::seconds(20));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  Seat& seat = o.ranks.seat;
  o.step.arch = "resnet18";
  o.step.classes = 10;
  o.step.batch = 8;
  int size = 32;
  o.step.threads = 1;
  o.step.channels_last = true;
  o.step.label_smoothing = 0.1;
  o.step.momentum = 0.9;
  o.step.weight_decay = 1e-4;
  o.step.decay_all = true;
  o.step.seed = 42;
  std::int64_t heartbeat = 60'000;
  CLI::App app("one rank of a small training");
  app.add_option("--rank", seat.rank);
  app.add_option("--world", seat.world);
  app.add_option("--port", seat.port);
  app.add_option("--address", seat.address);
  app.add_option("--heartbeat", heartbeat, "ms");
  app.add_option("--steps", o.steps);
  app.add_option("--warm", o.warm, "steps that are not measured");
  app.add_option("--batch", o.step.batch, "per rank");
  app.add_option("--size", size);
  app.add_option("--classes", o.step.classes);
  app.add_option("--arch", o.step.arch);
  app.add_option("--precision", o.step.precision);
  app.add_option("--accumulate", o.step.accumulate);
  app.add_option("--threads", o.step.threads);
  app.add_flag("--sync-bn", o.step.sync_bn);
  app.add_flag("--recompute", o.step.recompute);
  app.add_flag("--mix", o.mix);
  app.add_flag("--timed", o.timed, "print step times instead of figures");
  app.add_option("--trace", o.trace, "rank 0 writes when gradients were ready and when they were summed");
  app.add_option("--die-at", o.die_at);
  app.add_option("--freeze-at", o.freeze_at);
  app.add_option("--fail-at", o.fail_at);
  CLI11_PARSE(app, argc, argv);
  o.ranks.timeout = std::chrono::minutes(10);
  o.ranks.heartbeat = std::chrono::milliseconds(heartbeat);
  o.step.task = image_classification(size);
  return work(std::move(o));
}
