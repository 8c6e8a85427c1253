// `sluice bench feed`: the data path as a run would have it, into a consumer of a given speed instead of a
// device. Nothing of torch takes part.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/bench/benches.hpp"
#include "cli/common.hpp"
#include "graph/figures/diagnosis.hpp"
#include "run/config/step_options.hpp"
#include "run/data/slow_storage.hpp"
#include "run/data/synth_tree.hpp"
#include "run/session/session.hpp"
#include "run/train/data_only.hpp"
#include "run/train/memory_watch.hpp"

namespace sluice {
namespace {

struct FeedBench {
  ConfigArguments config;
  double rate = 0;  // images/s that the consumer takes; 0: as fast as they come
  StorageSpeed storage;
  double seconds = 20, warmup = 10;
  bool headspace = false, json = false;  // headspace: batches in memory, to see the consumer's ceiling
};

double seconds(Nanoseconds time) { return static_cast<double>(time) * 1e-9; }

// A device that takes a fixed time for each batch. Each byte of it is looked at once, as a copy to a device
// would, and then its slot goes back.
class Consumer {
 public:
  explicit Consumer(double rate) : rate_(rate), piece_(1 << 20) {}

  void upload(Batch& batch) {
    const std::span<const std::uint8_t> pixels = batch.slot->memory();
    for (std::size_t at = 0; at < pixels.size(); at += piece_.size())
      std::memcpy(piece_.data(), pixels.data() + at, std::min(piece_.size(), pixels.size() - at));
    batch.device = std::make_shared<std::uint32_t>(batch.slot->places());
    batch.slot.release();
  }

  void step(const Batch& batch, const Stop& stop) {
    if (first_ == 0) first_ = now_ns();  // this thread alone writes it
    const std::uint32_t places = *static_cast<const std::uint32_t*>(batch.device.get());
    if (rate_ > 0) stop.pause(std::chrono::nanoseconds(static_cast<Nanoseconds>(places / rate_ * 1e9)));
    if (stop.requested()) return;
    const Nanoseconds now = now_ns();
    if (counting_) {
      if (counted_from_ == 0)
        counted_from_ = now;
      else
        images_ += places, ++batches_, counted_to_ = now;
    }
  }
  void count_from_now() { counting_ = true; }

  [[nodiscard]] Nanoseconds first() const { return first_; }  // 0: not yet
  // After the run: from the end of one batch to the end of another. Nothing if there were too few to tell, as
  // they come in bursts.
  [[nodiscard]] std::optional<double> images_per_s() const {
    if (batches_ < 8) return std::nullopt;
    return static_cast<double>(images_) / seconds(counted_to_ - counted_from_);
  }

 private:
  double rate_;
  std::vector<std::uint8_t> piece_;
  std::atomic<bool> counting_{false};
  std::atomic<Nanoseconds> first_{0};
  Nanoseconds counted_from_ = 0, counted_to_ = 0;
  std::uint64_t images_ = 0, batches_ = 0;
};

// Batches whose slots have all been filled once are given again as they are.
Stages with_cached_batches(Stages stages, std::uint64_t filled) {
  stages.read = [filled, inner = stages.read](const Ticket& t, const TakeChunks& take, const Stop& stop) {
    if (t.batch < filled) return inner(t, take, stop);
    take(1);
    return Outcome{};
  };
  stages.decode = [filled, inner = stages.decode](const Ticket& t, Pieces pieces, Slot& slot,
                                                  const Stop& stop) {
    return t.batch < filled ? inner(t, pieces, slot, stop) : Outcome{};
  };
  stages.augment = [filled, inner = stages.augment](const Ticket& t, Slot& slot) {
    return t.batch < filled ? inner(t, slot) : Outcome{};
  };
  return stages;
}

struct FeedFigures {
  Ending ending;
  bool whole = false;  // lasted to its end
  GraphFigures part;   // after the warm-up
  double first_batch_s = 0, images_per_s = 0, starvation = 0;
  std::size_t peak_ledger = 0, idle_rss = 0, peak_rss = 0;
};

FeedFigures measure(const DataOnly& feed, const FeedBench& bench) {
  FeedFigures m;
  m.idle_rss = resident_bytes();
  Consumer consumer(bench.rate);
  std::optional<Session> session;
  Stages stages = slowed(feed.stages(), bench.storage);
  PipelineOptions options = feed.plan.pipeline;
  if (bench.headspace) {
    stages = with_cached_batches(std::move(stages), options.split.slots);
    options.sizing.reset();  // whoever reads nothing tells nothing about sizes
  }
  stages.upload = [&](Batch& batch) {
    consumer.upload(batch);
    return Status(Done{});
  };
  stages.step = [&](Batch& batch) {
    consumer.step(batch, session->stop());
    return Status(Done{});
  };
  stages.tell = [](const std::string& line) { std::cerr << line + "\n"; };
  session.emplace(options, std::move(stages));
  const Nanoseconds begun = now_ns();
  std::optional<GraphFigures> warm;
  Nanoseconds warm_at = 0;
  const auto look = [&] {
    const GraphFigures now = session->pipeline().figures();
    if (!warm && seconds(now.elapsed) >= bench.warmup) {
      warm = now;
      warm_at = now_ns();
      consumer.count_from_now();
    } else if (!m.whole && warm && seconds(now.elapsed - warm->elapsed) >= bench.seconds) {
      m.part = between(*warm, now);
      // The graph counts waits from the first batch on. Here the warm-up was for that.
      const Nanoseconds first = consumer.first() != 0 ? consumer.first() : now_ns();
      m.part.node(NodeId::step).wait_input += std::clamp<Nanoseconds>(first - warm_at, 0, m.part.elapsed);
      m.whole = true;
      session->enough();
    }
  };
  m.ending = session->run({.tick = look});
  if (!m.whole) return m;
  m.first_batch_s = consumer.first() > 0 ? seconds(consumer.first() - begun) : 0;
  m.images_per_s = consumer.images_per_s().value_or(static_cast<double>(m.part.node(NodeId::collate).items) /
                                                    seconds(m.part.elapsed));
  m.starvation = std::min(1.0, seconds(m.part.node(NodeId::step).wait_input) / seconds(m.part.elapsed));
  m.peak_ledger = session->pipeline().ledger().peak();
  m.peak_rss = static_cast<std::size_t>(usage().ru_maxrss) * 1024;
  return m;
}

void print(const DataOnly& feed, const FeedBench& bench, const FeedFigures& m) {
  const Diagnosis diagnosis = diagnose(m.part);
  const PipelineOptions& o = feed.plan.pipeline;
  const unsigned read_threads = m.part.node(NodeId::read).concurrency;
  if (bench.json) {
    std::cout << nlohmann::ordered_json{{"images_per_s", m.images_per_s},
                                        {"starvation", m.starvation},
                                        {"first_batch_s", m.first_batch_s},
                                        {"peak_ledger_bytes", m.peak_ledger},
                                        {"peak_rss_bytes", m.peak_rss},
                                        {"idle_rss_bytes", m.idle_rss},
                                        {"diagnosis", diagnosis.line},
                                        {"bound_by", diagnosis.bound_by},
                                        {"rate", bench.rate},
                                        {"latency_ms", bench.storage.latency_ms},
                                        {"bandwidth_mb_s", bench.storage.megabytes_per_s},
                                        {"seconds", seconds(m.part.elapsed)},
                                        {"headspace", bench.headspace},
                                        {"budget_bytes", o.split.budget},
                                        {"batch", o.batch},
                                        {"image_size", feed.config.data.image_size},
                                        {"read_threads", read_threads},
                                        {"decode_threads", o.decode_threads}}
                     .dump()
              << "\n";
    return;
  }
  const std::string wanted =
      bench.rate > 0 ? " of " + std::to_string(std::lround(bench.rate)) + " wanted" : "";
  std::printf("images/s     %.1f%s\n", m.images_per_s, wanted.c_str());
  std::printf("starvation   %.2f %% of %.0f s, after a warm-up of %.0f s\n", 100 * m.starvation,
              seconds(m.part.elapsed), bench.warmup);
  std::printf("first batch  after %.2f s\n", m.first_batch_s);
  std::printf("memory       ledger %s of %s at its peak; resident %s, %s before\n",
              readable_bytes(m.peak_ledger).c_str(), readable_bytes(o.split.budget).c_str(),
              readable_bytes(m.peak_rss).c_str(), readable_bytes(m.idle_rss).c_str());
  std::printf("threads      %u read, %u decode; batch %u at %s\n", read_threads, o.decode_threads, o.batch,
              task_of(feed.config).size.c_str());
  std::printf("%s\n", diagnosis.line.c_str());
}

}  // namespace

static int bench_feed_command(ConfigArguments arguments, const FeedBench& bench) {
  use_own_data(arguments);
  std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  const Status made = make_training_tree(*config);
  const Result<DataOnly> feed = made ? training_data(std::move(*config)) : made.error();
  if (!feed) {
    complain(feed.error());
    return exit_usage;
  }
  const FeedFigures m = measure(*feed, bench);
  if (m.ending.well() && m.whole) print(*feed, bench, m);
  return told(m.ending);
}

Run add_bench_feed(Options& to) {
  const auto asked = std::make_shared<FeedBench>();
  to.config(asked->config).required();
  const auto number = [&](const char* name, double& value, const char* what, double low, double high) {
    to.option(name, &value, what).shows_default().range(low, high);
  };
  number("--rate", asked->rate, "Images/s that the consumer takes; 0: as fast as they come", 0, 1e9);
  number("--latency", asked->storage.latency_ms, "Milliseconds added to each file", 0, 1e6);
  number("--bandwidth", asked->storage.megabytes_per_s, "MB/s of all reads together; 0: as it is", 0, 1e9);
  number("--seconds", asked->seconds, "Seconds to measure", 0.1, 1e6);
  number("--warmup", asked->warmup, "Seconds before, which do not count", 0, 1e6);
  to.flag("--headspace", asked->headspace, "Give the first batches again and again instead");
  to.json(asked->json, "Print one JSON object");
  return [asked] { return bench_feed_command(asked->config, *asked); };
}

}  // namespace sluice
