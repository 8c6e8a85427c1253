// `sluice bench data`: the data path up to filled batches against a bare full decode of the same files, in
// turns, both on the same number of cores. Nothing of torch takes part.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>
#include <variant>

#include "base/text.hpp"
#include "cli/bench/benches.hpp"
#include "cli/bench/cpu_parts.hpp"
#include "cli/common.hpp"
#include "run/config/step_options.hpp"
#include "run/data/full_decode.hpp"
#include "run/data/pixel_difference.hpp"
#include "run/data/synth_tree.hpp"
#include "run/session/session.hpp"
#include "run/train/data_only.hpp"

namespace sluice {
namespace {

struct DataBench {
  ConfigArguments config;
  unsigned threads = 0;  // 0: all CPUs
  std::uint64_t images = 1536;
  int rounds = 5;
  bool json = false;
};

double cpu_seconds() {
  const rusage u = usage();
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

// Everything of this process on the first so many of the CPUs it may use: reads and bookkeeping of the data
// path would otherwise get a core that the full decode does not have.
void keep_to(unsigned cpus) {
  cpu_set_t allowed, few;
  CPU_ZERO(&few);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&few) < static_cast<int>(cpus); ++i)
    if (CPU_ISSET(i, &allowed)) CPU_SET(i, &few);
  sched_setaffinity(0, sizeof few, &few);
}

struct Round {
  double seconds = 0, cpu = 0;
};

class DataBenchmark {
 public:
  DataBenchmark(DataOnly data, unsigned threads, std::uint64_t batches)
      : data_(std::move(data)), threads_(threads) {
    data_.plan.pipeline.batches = batches;
    Sampler sampler(data_.sequence, 0);
    for (std::uint64_t i = 0; i < batches * data_.plan.pipeline.batch; ++i) {
      tickets_.push_back(*sampler.next());
      items_.push_back(tickets_.back().index % data_.images);
    }
  }

  [[nodiscard]] std::size_t images() const { return items_.size(); }
  [[nodiscard]] std::size_t ledger_peak() const { return ledger_peak_; }
  [[nodiscard]] std::uint64_t bad() const { return bad_; }
  [[nodiscard]] PixelDifference difference() const {
    const std::size_t some = std::min<std::size_t>(items_.size(), 300);
    return pixel_difference(train(), std::span(items_).first(some), data_.plan.data);
  }

  Round full_decode() {
    std::atomic<std::size_t> bad{0};
    const Round round = timed([&] {
      on_all_threads([&](const auto& next) {
        FullDecoder decoder(data_.plan.data.read);
        while (const auto at = next()) bad += !decoder.decode(train(), items_[*at]);
      });
    });
    bad_ = bad;
    return round;
  }

  // How the run ended, if that was not well, or what it took.
  std::variant<Ending, Round> data_path() {
    Stages stages = data_.stages();
    stages.next = [batches = data_.plan.pipeline.batches, inner = stages.next] {
      std::optional<Ticket> ticket = inner();
      return ticket && ticket->batch < batches ? ticket : std::nullopt;
    };
    stages.upload = [](Batch&) { return Status(Done{}); };
    stages.step = [](Batch& batch) {
      batch.slot.release();
      return Status(Done{});
    };
    Session session(data_.plan.pipeline, std::move(stages));
    Ending ending;
    const Round round = timed([&] { ending = session.run(); });
    ledger_peak_ = std::max(ledger_peak_, session.pipeline().ledger().peak());
    if (!ending.well()) return ending;
    return round;
  }

  // The data path's round with its parts, each by itself on as many threads. In ms of a CPU for an image.
  CpuRound with_parts(const Round& whole) {
    return {1e3 * whole.cpu / static_cast<double>(images()), alone(Part::read), alone(Part::read_decode),
            alone(Part::read_code)};
  }

 private:
  [[nodiscard]] const Source& train() const { return *data_.sets->train; }

  template <class Body>
  static Round timed(Body&& body) {
    const double cpu = cpu_seconds();
    const Nanoseconds begin = now_ns();
    body();
    return {1e-9 * static_cast<double>(now_ns() - begin), cpu_seconds() - cpu};
  }

  // Calls `body` on each thread with a function that gives it the next file's number, until there is none.
  template <class Body>
  void on_all_threads(const Body& body) {
    std::atomic<std::size_t> taken{0};
    const auto next = [&]() -> std::optional<std::size_t> {
      const std::size_t at = taken++;
      return at < items_.size() ? std::optional(at) : std::nullopt;
    };
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads_; ++i) all.emplace_back([&] { body(next); });
    for (std::thread& t : all) t.join();
  }

  enum class Part { read, read_decode, read_code };
  double alone(Part part) {
    const Round round = timed([&] {
      on_all_threads([&](const auto& next) {
        JpegDecoder decoder;
        decoder.without_resampling(part == Part::read_code);
        std::vector<std::uint8_t> file, out(data_.plan.pipeline.place_bytes);
        while (const auto at = next()) {
          const auto [read, whole] = fetch_whole(train(), items_[*at], data_.plan.data.read, file);
          if (part == Part::read || read.kind != Outcome::Kind::done) continue;
          const Ticket& t = tickets_[*at];
          (void)decode_sample(decoder, {&whole, 1}, true, {data_.plan.data.seed, t.epoch, t.index},
                              data_.plan.data.decode, data_.plan.data.decode.max_scratch, out.data());
        }
      });
    });
    return 1e3 * round.cpu / static_cast<double>(images());
  }

  DataOnly data_;
  unsigned threads_;
  std::vector<Ticket> tickets_;     // as the sampler gives them
  std::vector<std::size_t> items_;  // theirs
  std::size_t ledger_peak_ = 0;
  std::uint64_t bad_ = 0;
};

struct DataFigures {
  double full = 0, path = 0, ratio = 0;  // images/s, and the median of the rounds' ratios
  double full_cpu_ms = 0;                // of an image, all threads together
  CpuParts cpu;
  PixelDifference pixels;
};

std::variant<Ending, DataFigures> measure(DataBenchmark& bench, int rounds) {
  std::vector<double> full, path, ratio, full_cpu;
  std::vector<CpuRound> cpu;
  const double images = static_cast<double>(bench.images());
  for (int i = -1; i < rounds; ++i) {  // the first one warms the caches
    const Round a = bench.full_decode();
    const std::variant<Ending, Round> taken = bench.data_path();
    if (const Ending* ending = std::get_if<Ending>(&taken)) return *ending;
    if (i < 0) continue;
    const Round& b = std::get<Round>(taken);
    full.push_back(images / a.seconds);
    path.push_back(images / b.seconds);
    ratio.push_back(a.seconds / b.seconds);
    full_cpu.push_back(1e3 * a.cpu / images);
    cpu.push_back(bench.with_parts(b));
  }
  return DataFigures{median(full),     median(path),   median(ratio),
                     median(full_cpu), cpu_parts(cpu), bench.difference()};
}

// Of a difference that is within noise there is nothing to tell.
nlohmann::ordered_json part_json(double ms) { return ms > 0 ? nlohmann::ordered_json(ms) : nullptr; }

void print(const DataFigures& m, const DataBenchmark& bench, const DataOnly& data, unsigned threads,
           bool json) {
  const std::size_t rss = static_cast<std::size_t>(usage().ru_maxrss) * 1024;
  if (json) {
    std::cout << nlohmann::ordered_json{{"images_per_s", m.path},
                                        {"full_decode_images_per_s", m.full},
                                        {"ratio", m.ratio},
                                        {"threads", threads},
                                        {"images", bench.images()},
                                        {"decode", data.config.augment.decode},
                                        {"image_size", data.config.data.image_size},
                                        {"full_decode_cpu_ms", m.full_cpu_ms},
                                        {"cpu_ms", m.cpu.whole},
                                        {"read_ms", m.cpu.read},
                                        {"entropy_idct_ms", part_json(m.cpu.coding)},
                                        {"resample_ms", part_json(m.cpu.resample)},
                                        {"rest_ms", part_json(m.cpu.rest)},
                                        {"pixels_changed", m.pixels.changed},
                                        {"pixel_difference", m.pixels.mean},
                                        {"largest_pixel_difference", m.pixels.largest},
                                        {"images_reduced", m.pixels.reduced},
                                        {"bad_images", bench.bad()},
                                        {"peak_rss_bytes", rss},
                                        {"peak_ledger_bytes", bench.ledger_peak()}}
                     .dump()
              << "\n";
    return;
  }
  std::printf("%zu images at %s, %s, %u thread%s; medians, in turns\n", bench.images(),
              task_of(data.config).size.c_str(), data.config.augment.decode.c_str(), threads,
              threads == 1 ? "" : "s");
  std::printf("full decode   %8.1f images/s (libjpeg, whole images, nothing else)\n", m.full);
  std::printf("data path     %8.1f images/s, %.2f times as many\n", m.path, m.ratio);
  std::printf(
      "CPU an image  %8.3f ms (full decode %.3f): read %.3f, entropy and transform %s, resampling %s, rest "
      "%s\n",
      m.cpu.whole, m.full_cpu_ms, m.cpu.read, part_text(m.cpu.coding).c_str(),
      part_text(m.cpu.resample).c_str(), part_text(m.cpu.rest).c_str());
  std::printf("memory        %s at its peak, ledger %s of %s\n", readable_bytes(rss).c_str(),
              readable_bytes(bench.ledger_peak()).c_str(),
              readable_bytes(data.plan.pipeline.split.budget).c_str());
  std::printf(
      "pixels        %.2f %% differ from a full decode, by %.3f levels in the mean and %d at most; %.0f %% "
      "of "
      "the images decoded at a part of their size\n",
      100 * m.pixels.changed, m.pixels.mean, m.pixels.largest, 100 * m.pixels.reduced);
  if (bench.bad() > 0)
    std::printf("%llu images cannot be decoded\n", static_cast<unsigned long long>(bench.bad()));
}

}  // namespace

static int bench_data_command(ConfigArguments arguments, const DataBench& asked) {
  use_own_data(arguments);
  std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  const auto refuse = [](const Error& error) {
    complain(error);
    return exit_usage;
  };
  if (Status made = make_training_tree(*config); !made) return refuse(made.error());
  const unsigned threads = asked.threads > 0 ? asked.threads : this_machine().cpus;
  config->pipeline.decode_threads = threads;
  Result<DataOnly> data = training_data(*config);
  if (!data) return refuse(data.error());
  keep_to(threads);
  const std::uint64_t each = data->plan.pipeline.batch;
  DataBenchmark bench(*data, threads, std::max<std::uint64_t>((asked.images + each - 1) / each, 1));
  const std::variant<Ending, DataFigures> measured = measure(bench, asked.rounds);
  if (const Ending* ending = std::get_if<Ending>(&measured)) return told(*ending);
  print(std::get<DataFigures>(measured), bench, *data, threads, asked.json);
  return exit_done;
}

Run add_bench_data(Options& to) {
  const auto asked = std::make_shared<DataBench>();
  to.config(asked->config).required();
  to.option("--threads", &asked->threads, "Decode threads, and CPUs to keep to; 0: all").range(0, 1024);
  to.option("--images", &asked->images, "Images in a round").shows_default();
  to.option("--rounds", &asked->rounds, "Rounds of both, in turns").shows_default().range(1, 1000);
  to.json(asked->json, "Print one JSON object");
  return [asked] { return bench_data_command(asked->config, *asked); };
}

}  // namespace sluice
