#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>

#include "base/thread_limit.hpp"
#include "cli/commands.hpp"
#include "graph/figures/diagnosis.hpp"
#include "graph/figures/dot.hpp"
#include "graph/flow/pipeline.hpp"
#include "model/device/cpu_memory.hpp"
#include "nodes/record/tensorboard.hpp"
#include "run/launch/launch.hpp"
#include "run/launch/rank_watch.hpp"
#include "run/launch/signals.hpp"
#include "run/train/memory_watch.hpp"
#include "run/train/setup.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

// What the log's thread needs of the graph, which is made after it.
struct GraphLink {
  std::atomic<Stop*> stop{nullptr};
  std::atomic<NodeStats*> stats{nullptr};
};

// Cut before the graph goes.
struct Linked {
  GraphLink& link;
  Linked(GraphLink& l, Pipeline& pipeline) : link(l) {
    link.stop = &pipeline.stop();
    link.stats = &pipeline.log_stats();
  }
  ~Linked() {
    link.stop = nullptr;
    link.stats = nullptr;
  }
};

Result<std::unique_ptr<Log>> open_log(const TrainerOptions& o, std::size_t capacity, GraphLink& graph) {
  LogOptions options;
  options.capacity = capacity;
  options.screen = &std::cerr;
  options.terminal = isatty(STDERR_FILENO) == 1;
  options.width = [] { return terminal_width(STDERR_FILENO); };
  options.on_error = [&graph](const Error& error) {
    if (Stop* stop = graph.stop) stop->fail(error);  // metrics that cannot be kept are lost work
  };
  if (!o.place.first()) {  // it has only warnings and errors to tell
    options.terminal = false;
    return std::make_unique<Log>(std::move(options));
  }
  const fs::path kept = o.folder / "metrics.jsonl";
  Result<std::shared_ptr<AppendFile>> metrics = open_lines(kept.string());
  if (!metrics) return metrics.error();
  Result<LineSink> text = append_to((o.folder / "train.log").string());
  if (!text) return text.error();
  options.sync = [file = *metrics] {
    Status synced = file->sync();
    return synced ? file->still_there() : synced;
  };
  options.metrics = [&graph, sink = lines_into(*metrics)](std::string_view line) {
    NodeStats* stats = graph.stats;
    if (!stats) return sink(line);
    stats->arrive();
    const Serving serving(*stats);
    return sink(line);
  };
  options.text = std::move(*text);
  if (o.config.log.tensorboard) {
    const std::int64_t from = o.resume ? o.resume->state.value("step", std::int64_t{0}) : 0;
    const bool whole = o.resume && !has_events(o.folder);  // those of a fork stayed where they were
    Result<std::shared_ptr<EventFile>> events = EventFile::open(o.folder, from, kept, whole);
    if (!events) return events.error();
    options.events = [file = *events](const Record& record) { return file->write(record); };
    options.sync = [metrics = options.sync, file = *events] {
      Status synced = metrics();
      return synced ? file->sync() : synced;
    };
  }
  return std::make_unique<Log>(std::move(options));
}

void write_graph(const fs::path& folder, const GraphFigures& figures, const std::string& title) {
  const fs::path temporary = folder / ".graph.dot.new";
  std::error_code ignored;  // a drawing that is not made must not end a run
  fs::remove(temporary, ignored);
  const Result<std::shared_ptr<AppendFile>> out = AppendFile::open(temporary.string());
  if (out && (*out)->append(to_dot(figures, title))) fs::rename(temporary, folder / "graph.dot", ignored);
}

std::chrono::milliseconds seconds(double value) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(value * 1000));
}

// All that happens ten times a second while the run is on.
struct Attendant {
  Pipeline& pipeline;
  Log& log;
  RankWatch& ranks;
  const Trainer& trainer;
  const TrainSetup& setup;
  const PartDiagnosis& diagnosis;
  const std::string title;
  MemoryWatch memory;
  Nanoseconds drawn = 0, told_at = 0;
  std::uint64_t begun = 0;  // when the signal came
  bool told = false;

  void operator()() {
    if (const int signal = caught_signal(); signal && !told) {
      told = true;
      told_at = now_ns();
      begun = trainer.begun();
      if (setup.trainer.place.alone()) pipeline.stop().request();  // ranks agree on it, in the trainer
      if (setup.trainer.place.first())
        log.message(Level::info, signal_name(signal) +
                                     (setup.trainer.place.alone() ? ": ending after this step"
                                                                  : ": ending within two batches") +
                                     " and saving last.ckpt; once more ends at once");
    }
    answer();
    if (told && starving()) {
      told = false;
      pipeline.stop().fail({"ranks", "", "told to end, and no batch came", "go on with --resume auto"});
    }
    if (const std::optional<Error> failure = pipeline.stop().failure()) ranks.failed(*failure);
    if (const std::optional<std::string> warning = memory.look(now_ns()))
      log.message(Level::warning, *warning);
    if (now_ns() - drawn > 2'000'000'000) draw(pipeline.figures());
  }

  void answer() const {
    if (asked_by_signal()) log.message(Level::info, diagnosis.so_far().line);
  }

  // Ranks agree on a stop from batch to batch. Where none comes, because a read takes long and the others may
  // be gone, there is no time to wait for it: what ends processes does not wait either.
  bool starving() const {
    return !setup.trainer.place.alone() && now_ns() - told_at > 10'000'000'000 && !trainer.busy() &&
           trainer.begun() == begun && !pipeline.stop().failure();
  }

  void draw(const GraphFigures& figures) {
    if (!setup.trainer.place.first()) return;
    drawn = now_ns();
    write_graph(title, figures, title);
  }
};

// The last record and messages; the exit code.
int conclude(const TrainSetup& setup, const RunEnd& end, const Trainer& trainer, const Status& saved,
             const std::optional<Error>& lost, Log& log) {
  const std::optional<Error> failure = end.failure ? end.failure
                                       : !saved    ? std::optional(saved.error())
                                                   : lost;
  const Diagnosis diagnosis = diagnose(end.figures);
  const bool finished = end.finished && !trainer.stopped_early();
  if (setup.trainer.place.first())
    log.put({"end",
             trainer.epoch(),
             trainer.steps(),
             {{"peak_ledger_bytes", static_cast<double>(end.figures.ledger_peak)}},
             {{"reason", failure    ? failure->text()
                         : finished ? "finished"
                                    : "stopped"},
              {"diagnosis", diagnosis.line}}});
  if (failure) log.message(Level::error, failure->text());
  if (end.failure && !saved) log.message(Level::error, saved.error().text());
  if (end.abandoned) log.message(Level::warning, "a read never came back: its thread is left behind");
  const bool nothing_left = setup.plan.pipeline.first_batch == setup.plan.pipeline.batches;
  if (finished && setup.trainer.place.first())
    log.message(Level::info,
                nothing_left ? "this run was finished already; raise train.epochs or train.max_steps to go on"
                             : diagnosis.line);
  const Status closed = log.close();
  if (!closed && !failure) complain(closed.error());
  if (failure || !closed) return exit_failed;
  if (finished) return exit_done;
  return 128 + (setup.trainer.place.alone() ? caught_signal() : trainer.agreed_stop());
}

// A copy, but for the checkpoint and the weights, which are large and stay with the trainer.
TrainerOptions take_options(TrainerOptions& from) {
  std::optional<Snapshot> resume = std::exchange(from.resume, std::nullopt);
  std::optional<Snapshot> weights = std::exchange(from.weights, std::nullopt);
  TrainerOptions options = from;
  options.resume = std::move(resume);
  options.weights = std::move(weights);
  return options;
}

int run(TrainSetup& p, RankWatch& ranks) {
  catch_signals();
  const Config& config = p.trainer.config;
  GraphLink link;
  Result<std::unique_ptr<Log>> opened = open_log(p.trainer, p.plan.pipeline.log_queue, link);
  if (!opened) {
    complain(opened.error());
    ranks.failed(opened.error());
    return exit_usage;
  }
  Log& log = **opened;
  Ledger ledger(p.plan.pipeline.split.budget);
  std::optional<Pipeline> pipeline;  // outlives the feed, which pins its slots
  DeviceFeed feed(p.trainer.device, config.train.batch, config.data.image_size, p.trainer.place.local_rank);
  const std::vector<std::string> notes = describe(p);
  Trainer trainer(take_options(p.trainer), log);
  Status saved = Done{};
  Stages stages = data_path(p.sets, trainer.sequence(), p.plan.data);
  stages.upload = [&](Batch& batch) { return feed.upload(batch); };
  stages.step_begin = [&] { return trainer.begin(); };
  stages.step = [&](Batch& batch) { return trainer.step(batch); };
  stages.step_over = [&] { saved = trainer.over(); };
  stages.tell = [&](const std::string& line) {
    if (p.trainer.place.first()) log.message(Level::info, line);
  };
  stages.records = [&] { return static_cast<double>(log.waiting()); };
  pipeline.emplace(p.plan.pipeline, std::move(stages), ledger);
  const Linked linked(link, *pipeline);
  if (p.trainer.place.first())
    for (const std::string& line : notes) log.message(Level::info, line);
  for (const std::string& line : p.start.warnings) log.message(Level::warning, line);
  trainer.connect(pipeline->log_stats(), pipeline->stop(), [&] { return ledger.peak(); });
  pipeline->stop().on_stop([&] { feed.cancel(); });
  if (Status ready = feed.prepare(pipeline->slots()); !ready) {
    complain(ready.error());
    ranks.failed(ready.error());
    return exit_usage;
  }
  PartDiagnosis diagnosis([&] { return pipeline->figures(); });
  trainer.diagnose_epochs([&] { return diagnosis.part_over().line; });
  trainer.watch_gpu(feed.gpu_figures());

  const auto memory_figures = [&] {
    const KeptMemory::Usage tensors = cpu_memory();
    return MemoryFigures{resident_bytes(), ledger.held(), tensors.in_use + tensors.kept};
  };
  Attendant attendant{*pipeline,
                      log,
                      ranks,
                      trainer,
                      p,
                      diagnosis,
                      p.trainer.folder.string(),
                      {p.plan.memory.total(), memory_figures}};
  attendant.draw(pipeline->figures());
  ranks.watch(pipeline->stop());
  const RunEnd end = pipeline->run([&] { attendant(); });
  attendant.answer();
  ranks.release();
  attendant.draw(end.figures);
  if (end.failure || !saved) ranks.failed(end.failure ? *end.failure : saved.error());
  const std::optional<Error> lost =
      end.failure || !saved ? std::nullopt : ranks.leave(seconds(config.dist.timeout));
  const int code = conclude(p, end, trainer, saved, lost, log);
  if (end.abandoned) {
    std::cerr.flush();
    _exit(code);
  }
  return code;
}

// This process as one rank, or alone.
int train(const Config& config, const ConfigArguments& arguments, const std::string& resume,
          const Place& place) {
  const auto refuse = [](const Error& error) {
    complain(error);
    return exit_usage;
  };
  const Result<std::string> device = resolve_device(config.model.device);
  if (!device) return refuse(device.error());
  std::shared_ptr<Ranks> ranks;
  if (!place.alone()) {
    if (const std::string warning = trust_warning(place); place.first() && !warning.empty())
      std::cerr << "sluice: warning: " << warning << "\n";
    Result<std::shared_ptr<Ranks>> joined =
        Ranks::join({place, *device, seconds(config.dist.timeout), seconds(config.dist.heartbeat),
                     [] { return caught_signal() != 0; }});
    if (!joined) {
      refuse(joined.error());
      std::cerr.flush();
      _exit(exit_usage);  // a thread may be left behind in torch, and what it uses must not be taken down
    }
    ranks = std::move(*joined);
  }
  RankWatch watch(ranks);
  try {
    Result<TrainSetup> setup = set_up_training(config, arguments, resume, *device, place, ranks);
    if (!setup) {
      complain(setup.error());
      watch.failed(setup.error());
      return exit_usage;
    }
    return run(*setup, watch);
  } catch (const std::exception& error) {
    const Error told = as_error("train", error);
    watch.release();
    complain(told);
    watch.failed(told);
    return exit_failed;
  }
}

}  // namespace

int train_command(const ConfigArguments& arguments, const TrainArguments& asked) {
  heed_questions();
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  const Environment environment = this_environment();
  const bool launched = follow_launcher(environment);
  Result<std::optional<Place>> place = place_from(environment);
  if (place && *place && !launched && (asked.launch.devices || asked.launch.nodes || asked.launch.node_rank))
    place = Error{"launch", "RANK", "is set: this process is one rank already, and starts no others",
                  "leave out --devices, --nodes and --node-rank"};
  if (!place) {
    complain(place.error());
    return exit_usage;
  }
  if (*place && !launched) (*place)->listener = -1;  // some other process's number
  if (*place) return train(*config, arguments, asked.resume, **place);
  const Result<Hosts> hosts = hosts_from(environment, asked.launch);
  if (!hosts) {
    complain(hosts.error());
    return exit_usage;
  }
  if (hosts->world() == 1) return train(*config, arguments, asked.resume, {});
  return launch({*hosts, asked.words});
}

}  // namespace sluice
