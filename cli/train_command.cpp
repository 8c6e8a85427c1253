#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/run_folder.hpp"
#include "cli/run_plan.hpp"
#include "cli/signals.hpp"
#include "cli/trainer.hpp"
#include "graph/diagnosis.hpp"
#include "graph/dot.hpp"
#include "graph/pipeline.hpp"
#include "model/weights_file.hpp"
#include "nodes/tensorboard.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

// Everything that is settled before a thread starts.
struct Prepared {
  RunPlan plan;
  std::shared_ptr<const DataSets> sets;
  TrainerOptions trainer;
  std::vector<std::string> notes;  // for the log, once there is one
  std::vector<fs::path> damaged = {};
};

// Records and quarantine go back to where the checkpoint stood.
Status cut_back(TrainerOptions& o) {
  const nlohmann::json state = o.resume ? o.resume->state : nlohmann::json::object();
  Result<std::size_t> kept = cut_lines(o.folder / "metrics.jsonl", state.value("records", std::size_t{0}));
  if (!kept) return kept.error();
  o.records = *kept;
  kept = cut_lines(o.folder / "quarantine.jsonl",
                   state.value("bad", nlohmann::json::object()).value("lines", std::size_t{0}));
  if (!kept) return kept.error();
  if (o.resume) o.resume->state["bad"]["lines"] = *kept;
  return Done{};
}

// Finds the run to go on with and, once it is locked, the checkpoint to go on from.
Status take_up(Prepared& p, const Config& config, const ConfigArguments& arguments, const std::string& what) {
  const Result<fs::path> run = folder_to_resume(what, config, arguments.file);
  if (!run) return run.error();
  std::optional<Resume> found;
  if (fs::is_directory(*run)) {
    if (Status locked = lock_run_folder(*run); !locked) return locked;
    Result<std::optional<Resume>> looked = find_resume(what, *run);
    if (!looked) return looked.error();
    found = std::move(*looked);
    fs::create_directories(*run / "checkpoints");
    p.trainer.folder = *run;  // without a checkpoint, it has nothing to lose and begins again
  }
  if (!found) {
    p.notes.push_back("no checkpoint to resume from yet: starting anew");
    return Done{};
  }
  for (Resume::Damaged& damaged : found->passed_over) {
    p.notes.push_back("passed over: " + damaged.reason);
    p.damaged.push_back(std::move(damaged.file));
  }
  p.trainer.resume = std::move(found->snapshot);
  p.notes.push_back("going on from " + p.trainer.resume->source);
  return Done{};
}

Result<Prepared> prepare(const Config& config, const ConfigArguments& arguments, const std::string& resume) {
  Result<std::string> device = resolve_device(config.model.device);
  if (!device) return device.error();
  if (Status made = make_synth_tree(config); !made) return made.error();
  Result<DataSets> sets = scan_data(config);
  if (!sets) return sets.error();
  const std::size_t index_bytes = sets->train.index_bytes() + sets->val.index_bytes();
  Result<RunPlan> plan = plan_run(config, this_machine(), *device, index_bytes);
  if (!plan) return plan.error();
  Result<Sequence> sequence = Sequence::make(run_shape(config, *sets));
  if (!sequence) return sequence.error();

  const int classes = static_cast<int>(sets->train.class_names().size());
  Prepared p{std::move(*plan),
             std::make_shared<const DataSets>(std::move(*sets)),
             TrainerOptions{config, *sequence, classes, *device, 1, {}, to_toml(config), {}, {}, 0},
             {}};
  p.trainer.torch_threads = p.plan.torch_threads;
  if (!resume.empty())
    if (Status taken = take_up(p, config, arguments, resume); !taken) return taken.error();
  if (!config.model.weights.empty() && !p.trainer.resume) {
    Result<Snapshot> weights = read_weights(config.model.weights);
    if (!weights) return weights.error();
    p.trainer.weights = std::move(*weights);
  }
  Result<std::uint64_t> first = first_batch(p.trainer);
  if (!first) return first.error();
  p.plan.pipeline.first_batch = p.plan.data.first_batch = *first;
  p.plan.pipeline.batches = sequence->batches();
  const bool made = p.trainer.folder.empty();
  if (made) {
    Result<fs::path> folder = make_run_folder(config, arguments.file);
    if (!folder) return folder.error();
    p.trainer.folder = *folder;
    if (Status locked = lock_run_folder(p.trainer.folder); !locked) return locked.error();
  }
  for (const fs::path& file : p.damaged) set_aside(file);
  if (Status cut = made ? Status(Done{}) : cut_back(p.trainer); !cut) return cut.error();
  std::ofstream out(p.trainer.folder / "config.toml");
  out << "# " << version_text() << "\n" << p.trainer.config_text;
  if (!out.flush())
    return Error{"run folder", (p.trainer.folder / "config.toml").string(), "cannot be written",
                 "is the disk full?"};
  return p;
}

std::vector<std::string> describe(const Prepared& p) {
  const PipelineOptions& o = p.plan.pipeline;
  const Sequence& s = p.trainer.sequence;
  const auto count = [](std::uint64_t n) { return std::to_string(n); };
  std::vector<std::string> lines = {
      version_text() + ", " + p.trainer.config.model.arch + " on " + p.trainer.device + ", run folder " +
          p.trainer.folder.string(),
      count(s.shape().train_images) + " training and " + count(s.shape().val_images) +
          " validation images, " + std::to_string(p.trainer.classes) + " classes; " +
          count(s.steps_per_epoch()) + " steps and " + count(s.val_batches()) +
          " validation batches an epoch",
      "threads: " + count(o.read_threads) + " read, " + count(o.decode_threads) + " decode, " +
          count(p.plan.torch_threads) + " torch; RAM of the data path (" + p.plan.budget_source +
          "):" + o.split.table()};
  lines.insert(lines.end(), p.notes.begin(), p.notes.end());
  return lines;
}

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
  const fs::path kept = o.folder / "metrics.jsonl";
  Result<std::shared_ptr<AppendFile>> metrics = open_lines(kept.string());
  if (!metrics) return metrics.error();
  Result<LineSink> text = append_to((o.folder / "train.log").string());
  if (!text) return text.error();
  options.sync = [file = *metrics] { return file->sync(); };
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
    Result<std::shared_ptr<EventFile>> events = EventFile::open(o.folder, from, kept);
    if (!events) return events.error();
    options.events = [file = *events](const Record& record) { return file->write(record); };
    options.sync = [metrics = options.sync, file = *events] {
      Status synced = metrics();
      return synced ? file->sync() : synced;
    };
  }
  return std::make_unique<Log>(std::move(options));
}

void write_graph(const fs::path& folder, const Picture& picture, const std::string& title) {
  const fs::path temporary = folder / ".graph.dot.new";
  std::ofstream out(temporary);
  out << to_dot(picture, title);
  out.close();
  std::error_code ignored;  // a picture that is not drawn must not end a run
  if (out) fs::rename(temporary, folder / "graph.dot", ignored);
}

}  // namespace

int train_command(const ConfigArguments& arguments, const std::string& resume) {
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  Result<Prepared> prepared = prepare(*config, arguments, resume);
  if (!prepared) {
    complain(prepared.error());
    return exit_usage;
  }
  catch_signals();
  Prepared& p = *prepared;
  const fs::path folder = p.trainer.folder;

  GraphLink link;
  Result<std::unique_ptr<Log>> opened = open_log(p.trainer, p.plan.pipeline.log_queue, link);
  if (!opened) {
    complain(opened.error());
    return exit_failed;
  }
  Log& log = **opened;
  Ledger ledger(p.plan.pipeline.split.budget);
  std::optional<Pipeline> pipeline;  // outlives the feed, which pins its slots
  const std::vector<std::string> notes = describe(p);
  DeviceFeed feed(p.trainer.device, config->train.batch, config->data.image_size);
  Trainer trainer(std::move(p.trainer), log);
  Status saved = Done{};
  Stages stages = data_path(p.sets, trainer.sequence(), p.plan.data);
  stages.upload = [&](Batch& batch) { return feed.upload(batch); };
  stages.step_begin = [&] { return trainer.begin(); };
  stages.step = [&](Batch& batch) { return trainer.step(batch); };
  stages.step_over = [&] { saved = trainer.over(); };
  stages.records = [&] { return static_cast<double>(log.waiting()); };
  pipeline.emplace(p.plan.pipeline, std::move(stages), ledger);
  const Linked linked(link, *pipeline);
  for (const std::string& line : notes) log.message(Level::info, line);
  trainer.connect(pipeline->log_stats(), [&] { return ledger.peak(); });
  pipeline->stop().on_stop([&] { feed.cancel(); });
  if (Status ready = feed.prepare(pipeline->slots()); !ready) {
    complain(ready.error());
    return exit_usage;
  }

  const std::string title = folder.string();
  Nanoseconds drawn = now_ns();
  write_graph(folder, pipeline->picture(), title);
  bool told = false;
  const RunEnd end = pipeline->run([&] {
    if (const int signal = caught_signal(); signal && !told) {
      told = true;
      pipeline->stop().request();
      log.message(Level::info, std::string(signal == SIGINT ? "SIGINT" : "SIGTERM") +
                                   ": ending after this step and saving last.ckpt; once more ends at once");
    }
    if (now_ns() - drawn > 2'000'000'000) {
      drawn = now_ns();
      write_graph(folder, pipeline->picture(), title);
    }
  });
  write_graph(folder, end.picture, title);

  const std::optional<Error> failure = end.failure ? end.failure
                                       : saved     ? std::nullopt
                                                   : std::optional(saved.error());
  const Diagnosis diagnosis = diagnose(end.picture);
  log.put({"end",
           trainer.epoch(),
           trainer.steps(),
           {{"peak_ledger_bytes", static_cast<double>(end.picture.ledger_peak)}},
           {{"reason", failure        ? failure->text()
                       : end.finished ? "finished"
                                      : "stopped"},
            {"diagnosis", diagnosis.line}}});
  if (failure) log.message(Level::error, failure->text());
  if (end.failure && !saved) log.message(Level::error, saved.error().text());
  if (end.abandoned) log.message(Level::warning, "a read never came back: its thread is left behind");
  const bool nothing_left = p.plan.pipeline.first_batch == p.plan.pipeline.batches;
  if (end.finished)
    log.message(Level::info,
                nothing_left ? "this run was finished already; raise train.epochs or train.max_steps to go on"
                             : diagnosis.line);
  const Status closed = log.close();
  if (!closed && !failure) complain(closed.error());

  int code = failure || !closed ? exit_failed : exit_done;
  if (code == exit_done && !end.finished) code = 128 + caught_signal();
  if (end.abandoned) {
    std::cerr.flush();
    _exit(code);
  }
  return code;
}

}  // namespace sluice
