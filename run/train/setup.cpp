#include "run/train/setup.hpp"

#include <algorithm>
#include <span>

#include "base/checksum.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/thread_limit.hpp"
#include "model/device/version.hpp"
#include "model/ranks/heartbeat.hpp"
#include "run/config/same.hpp"
#include "run/data/synth_tree.hpp"
#include "run/plan/fit.hpp"
#include "run/train/bad_images.hpp"
#include "run/train/records.hpp"
#include "run/train/run_folder.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

// Of what the labels mean: the classes, and a sample of the images.
std::string fingerprint(const DataSets& sets) {
  constexpr std::size_t sample = 1000;
  Checksum sum;
  const auto add = [&](std::string text) {
    text += '\n';
    sum.add(std::as_bytes(std::span(text)));
  };
  for (const Source* source : {sets.train.get(), sets.val.get()}) {
    for (const std::string& name : source->class_names()) add(name);
    for (std::size_t i = 0; i < sample && i < source->size(); ++i)
      add(fs::path(source->name(i * source->size() / std::min(sample, source->size()))).filename().string());
  }
  return std::to_string(sum.value());
}

// Rank 0 tells of its run; the others see that theirs is the same, and where to go on. Nobody goes on before
// all have agreed: rank 0 will change its folder then.
Status agree_on_run(Ranks& ranks, const RunFacts& o, RunStart& start, const DataSets& sets) {
  const std::optional<Snapshot>& resume = start.point.resume;
  json shape = shape_of(o);
  shape["model.device"] = o.device;
  shape["classes and images"] = fingerprint(sets);
  json told = {{"shape", shape},
               {"config", o.config_text},
               {"state", resume ? resume->state : json()},
               {"source", resume ? resume->source : ""}};
  const std::string text = told.dump(-1, ' ', false, json::error_handler_t::replace);
  const Result<std::string> heard = ranks.from_first("run", o.seat.first() ? text : "");
  if (!heard) return heard.error();
  if (o.seat.first()) return ranks.meet("the same run");
  const json first = json::parse(*heard);
  const std::string rank = "rank " + std::to_string(o.seat.rank);
  const json there = first.value("shape", json::object());
  for (const auto& [key, value] : told["shape"].items())
    if (const json other = there.value(key, json()); other != value)
      return Error{"ranks", rank, key + " is " + value.dump() + ", and " + other.dump() + " on rank 0",
                   "give all ranks the same configuration and data"};
  if (Status same = same_training(o.config_text, first["config"].get<std::string>(), rank); !same) {
    same.error().cause = told_by_peer(same.error().cause);
    return same;
  }
  if (!first["state"].is_null()) {
    Snapshot told_of;
    told_of.state = first["state"];
    told_of.source = first["source"];
    Result<Position> position = position_of(told_of);
    if (!position) return position.error();
    const Result<std::uint64_t> at = batch_after(*position, o, told_of.source);
    if (!at) return at.error();
    start.point.position = std::move(*position);
    start.first_batch = *at;
  }
  return ranks.meet("the same run");
}

// The folder is there now, and rank 0's part of it is ready.
Status share_folder(TrainSetup& p) {
  const json own = {{"folder", p.run.folder.string()}, {"fork of", p.start.fork_of.string()}};
  const std::string text = own.dump(-1, ' ', false, json::error_handler_t::replace);
  const Result<std::string> heard = p.ranks->from_first("folder", p.run.seat.first() ? text : "");
  if (!heard) return heard.error();
  if (p.run.seat.first()) return Done{};
  const json told = json::parse(*heard);
  p.run.folder = told["folder"].get<std::string>();
  p.start.fork_of = told["fork of"].get<std::string>();
  return Done{};
}

// The list of a rank other than the first, which may be on a host that does not share rank 0's folder.
Status open_own_quarantine(const TrainSetup& p, const BatchPlan& next) {
  const fs::path& folder = p.run.folder;
  const std::string name = quarantine_name(p.run.seat.rank);
  std::error_code ignored;  // a bad image that cannot be listed there tells
  fs::create_directories(folder, ignored);
  if (!p.start.fork_of.empty()) return copy_quarantine(p.start.fork_of / name, folder / name, next);
  if (p.start.point.position) {
    const Result<std::size_t> cut = cut_quarantine(folder / name, next);
    return cut ? Status(Done{}) : cut.error();
  }
  if (!fs::exists(folder / name, ignored)) return Done{};
  const Result<fs::path> aside = set_records_aside(folder, {folder / name});
  return aside ? Status(Done{}) : aside.error();
}

// Only one process makes the tree that data.synth stands for: rank 0, then one on each host that lacks it.
Status make_tree(const Config& config, const Seat& seat, Ranks* ranks) {
  if (!ranks) return make_synth_tree(config);
  if (!config.data.synth) return Done{};
  if (seat.first())
    if (Status made = make_synth_tree(config); !made) return made;
  if (Status met = ranks->meet("synth on rank 0"); !met) return met;
  if (seat.local_rank == 0)
    if (Status made = make_synth_tree(config); !made) return made;
  return ranks->meet("synth on each host");
}

}  // namespace

Result<TrainSetup> set_up_training(const Config& config, const ConfigArguments& arguments,
                                   const std::string& resume, const std::string& device, const Seat& seat,
                                   const std::shared_ptr<Ranks>& ranks) {
  if (Status fits = fits_before_synth(config, device, seat); !fits) return fits.error();
  if (Status made = make_tree(config, seat, ranks.get()); !made) return made.error();
  Result<DataSets> sets = scan_data(config);
  if (!sets) return sets.error();
  if (Status fits = fits_here(config, device, data_of(*sets), seat); !fits) return fits.error();
  const std::size_t index_bytes = sets->index_bytes();
  const Machine machine = this_machine();
  Result<RunPlan> plan =
      plan_run(config, machine, device, index_bytes, static_cast<unsigned>(seat.local_world),
               static_cast<std::int64_t>(sets->train->class_names().size()));
  if (!plan) return plan.error();
  Result<Sequence> sequence = Sequence::make(run_shape(config, *sets, seat));
  if (!sequence) return sequence.error();

  const int classes = static_cast<int>(sets->train->class_names().size());
  const unsigned torch_threads = plan->torch_threads;
  TrainSetup p{.plan = std::move(*plan),
               .sets = std::make_shared<const DataSets>(std::move(*sets)),
               .run = {.config = config,
                       .config_text = to_toml(config),
                       .sequence = *sequence,
                       .classes = classes,
                       .device = device,
                       .torch_threads = torch_threads,
                       .seat = seat},
               .ranks = ranks};
  if (Status possible = can_make_threads(p.plan.threads()); !possible) return possible.error();
  if (ranks)  // none makes anything before all have found that they can run
    if (Status met = ranks->meet("plan"); !met) return met.error();
  const auto ranks_here = static_cast<std::size_t>(seat.local_world);
  std::vector<std::string> notes;
  if (const std::size_t planned = ranks_here * p.plan.memory.total();
      planned > machine.memory && !config.budget.enforce)
    notes.push_back("planned are " + readable_bytes(planned) + " of RAM on this host, and " +
                    machine.memory_limit + " leaves " + readable_bytes(machine.memory) +
                    ": the run may be killed (budget.enforce = false)");
  if (std::string note = device_note(config.model.device, device); !note.empty())
    notes.push_back(std::move(note));
  if (seat.first()) {
    Result<RunStart> start = find_start(p.run, arguments.file, resume);
    if (!start) return start.error();
    p.start = std::move(*start);
  }
  if (ranks)
    if (Status agreed = agree_on_run(*ranks, p.run, p.start, *p.sets); !agreed) return agreed.error();
  if (seat.first())
    if (Status opened = open_start(p.start, p.run, arguments.file); !opened) return opened.error();
  if (ranks)
    if (Status shared = share_folder(p); !shared) return shared.error();
  p.start.notes.insert(p.start.notes.begin(), notes.begin(), notes.end());
  p.plan.pipeline.first_batch = p.plan.data.first_batch = p.start.first_batch;
  p.plan.pipeline.batches = sequence->batches();
  if (!seat.first())
    if (Status opened = open_own_quarantine(p, sequence->at(p.start.first_batch)); !opened)
      return opened.error();
  return p;
}

std::vector<std::string> describe(const TrainSetup& p) {
  const PipelineOptions& o = p.plan.pipeline;
  const Sequence& s = p.run.sequence;
  const Seat& seat = p.run.seat;
  const auto count = [](std::uint64_t n) { return std::to_string(n); };
  const std::string rank =
      seat.alone() ? "" : ", rank " + std::to_string(seat.rank) + " of " + std::to_string(seat.world);
  const std::string most_readers =
      o.sizing && o.sizing->most.read_threads > o.read_threads
          ? " (up to " + count(o.sizing->most.read_threads) + " if storage is slow)"
          : "";
  std::vector<std::string> lines = {
      version_text() + ", " + p.run.config.model.arch + " on " + p.run.device + rank + ", run folder " +
          printable(p.run.folder.string()),
      count(s.shape().train_images) + " training and " + count(s.shape().val_images) +
          " validation images, " + std::to_string(p.run.classes) + " classes; " + count(s.steps_per_epoch()) +
          " steps and " + count(s.val_batches()) + " validation batches an epoch",
      "threads: " + count(o.read_threads) + " read" + most_readers + ", " + count(o.decode_threads) +
          " decode, " + count(p.plan.torch_threads) + " torch; RAM of the data path (" +
          p.plan.budget_source + "):" + o.split.table(),
      "planned RAM of the process: " + readable_bytes(p.plan.memory.total()) +
          " (sluice plan lists who takes it)"};
  lines.insert(lines.end(), p.start.notes.begin(), p.start.notes.end());
  return lines;
}

}  // namespace sluice
